#include <stdio.h>

#include "sum.h"

int main(void) {
  if (sum(2, 3) == 5) {
    puts("sum_test: pass");
    return 0;
  }
  printf("sum_test: FAIL: sum(2, 3) is %d, expected 5\n", sum(2, 3));
  return 1;
}
