# Warnings are errors for both compilers; the set is what both know.
add_library(cofferdam_flags INTERFACE)
target_compile_options(cofferdam_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast
  -Wcast-align -Woverloaded-virtual -Wformat=2 -Wimplicit-fallthrough -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(cofferdam_flags INTERFACE -Wduplicated-cond -Wlogical-op -Wuseless-cast)
  # g++ 12 at -O2 calls values that were moved out of a std::variant uninitialised; ASan and UBSan look instead.
  target_compile_options(cofferdam_flags INTERFACE -Wno-maybe-uninitialized)
endif()
option(COFFERDAM_SANITIZE "address and undefined-behaviour sanitizers in every program but cofferdam-init" OFF)
if(COFFERDAM_SANITIZE)
  target_compile_options(cofferdam_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(cofferdam_flags INTERFACE -fsanitize=address,undefined)
endif()
