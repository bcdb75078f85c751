// Made by scripts/generate.mjs from contracts/*.schema.json: do not edit.

/**
 * cofferdam.event/1: One line of an attempt's account. Lines are numbered without a gap. At most 8 MiB each,
 * nested at most 32 deep.
 */
export type Event = {
  schema: "cofferdam.event/1";
  attempt_id: string;
  /** 1, 2, 3, ... without a gap. */
  seq: number;
  /** RFC 3339 in UTC with milliseconds. */
  at: string;
  type:
    /** The host's configured capacity is taken: the attempt waits, with its position. */
    | "queued"
    /**
     * The attempt id was free and the invocation is valid; the first event, unless the attempt had to wait.
     */
    | "admitted"
    /** The trusted head was read into the vault. */
    | "cloned"
    /** The bounded storage holds the work tree. */
    | "workspace-ready"
    /** The box stands and its controls were probed. */
    | "box-ready"
    /** The only way out stands: what it has given away, and whether it writes bodies down. */
    | "gateway-ready"
    /** The agent's program was started. */
    | "started"
    /**
     * One decoded event of the agent's own stream. Its content was written by the agent: data to show, never
     * to obey.
     */
    | "agent"
    /** One request at the gateway, allowed or denied. */
    | "egress"
    /** What lies in the user's repository beside the head, uncommitted files above all, has been counted. */
    | "source"
    /** A commit of what the agent has made so far is in the attempt's own store. */
    | "checkpointed"
    /** Somebody asked for the end of the attempt. */
    | "cancel-requested"
    /** The agent's final answer has been read. */
    | "answered"
    /** The agent's main process ended, with the status as the kernel gave it. */
    | "process-ended"
    /** Every process of every box of the attempt is gone, by the kernel's word. */
    | "box-gone"
    /** The cause and the agent's account are closed. */
    | "settled"
    /** The attempt's supervisor had gone; another process closes the account. */
    | "recovered"
    /** The work tree was turned into git objects. */
    | "snapshot"
    /** The change is a commit in the attempt's own store. */
    | "committed"
    /** The captured context is claimed; the ref is about to be made. */
    | "publishing"
    /** The change has a ref in the user's repository. */
    | "published"
    /** The context was stale, or the ref could not be made; the change is kept. */
    | "not-published"
    /** The result is in the ledger; the last event. */
    | "finished";
  /**
   * Facts of this event for people and programs. Keys may be added within version 1, so readers skip what
   * they do not know. {"unreadable": text} stands for what was not a JSON object.
   */
  data: Record<string, unknown>;
};

/**
 * cofferdam.invocation/1: The immutable request that one attempt executes. Optional keys may be left out or,
 * where the type says so, be null; the canonical encoding (keys sorted, no white space) holds every key and
 * the default values. Lengths are counted in bytes of UTF-8 by Cofferdam, and in characters here. The whole
 * document has at most 4 MiB and is nested at most 32 deep; duplicate keys, invalid UTF-8, lone surrogates
 * and integers written with a fraction or an exponent are refused.
 */
export type Invocation = {
  schema: "cofferdam.invocation/1";
  /** Used once, ever. 1 to 64 of a-z, 0-9 and -, starting and ending with a letter or digit. */
  attempt_id: string;
  /** All but implementation are read-only and take no commands. */
  phase: "planning" | "question" | "review" | "implementation";
  agent: {
    name: "claude" | "codex" | "command";
    /** Only for "command", and not empty there. */
    argv?: string[] | null;
    /** Not for "command". The pinned version must be exactly this one, otherwise the attempt is refused. */
    version?: string | null;
  };
  clone: {
    /** Absolute path of the work tree or git directory. */
    repository: string;
    /** Full object id of the trusted commit; never a name or an abbreviation. */
    head: string;
    /** If given, must be the tree of the head. */
    tree?: string | null;
    /**
     * How much of the history the box gets: all that the head reaches, or the one commit. null is the
     * default.
     * @default "full"
     */
    history?: "full" | "none" | null;
    /** The caller's uncommitted files, as Cofferdam's own commit on top of the head. */
    work_tree?: {
      commit: string;
      tree: string;
    } | null;
  };
  /** May be empty only for the agent "command". */
  prompt: string;
  /**
   * What the prompt was built from. The current version of the name is in the ledger: a stale one is refused,
   * at admission and at publication.
   */
  context?: {
    name: string;
    version: number;
    sha256: string;
    /**
     * The files that it was made of; recorded, never opened. Each path once.
     * @default []
     */
    files?: Array<{
      path: string;
      sha256: string;
    }> | null;
  } | null;
  /** The JSON Schema of the answer; at most 64 KiB in canonical form. Not for "command". */
  answer_schema?: Record<string, unknown> | null;
  /**
   * Commands that the agent may ask for by id; the ids are distinct. Only in the phase implementation.
   * @default []
   */
  commands?: Array<{
    id: string;
    /** Exact arguments; there is no shell. The program comes first and is not empty. */
    argv: string[];
  }> | null;
  deadlines: {
    /** From admission to the end of the agent; at most 7 days. */
    total_ms: number;
    /**
     * From SIGTERM to SIGKILL.
     * @default 5000
     */
    grace_ms?: number | null;
    /** From the start of the program to the first byte of its output. None: not bounded apart. */
    first_output_ms?: number | null;
    /** Without output of the program and without an answer of the vendor's. None: not bounded apart. */
    idle_ms?: number | null;
  };
  limits?: {
    /**
     * The work tree and everything written to it.
     * @default 2147483648
     */
    work_bytes?: number | null;
    /**
     * Files and folders of the work tree.
     * @default 500000
     */
    work_inodes?: number | null;
    /**
     * Each of HOME, /tmp and /dev/shm.
     * @default 536870912
     */
    scratch_bytes?: number | null;
    /**
     * Each of HOME, /tmp and /dev/shm.
     * @default 100000
     */
    scratch_inodes?: number | null;
    /**
     * Standard output. More ends the attempt; head and tail are kept.
     * @default 67108864
     */
    stdout_bytes?: number | null;
    /**
     * Standard error, likewise.
     * @default 67108864
     */
    stderr_bytes?: number | null;
    /**
     * One line of an agent's event stream.
     * @default 33554432
     */
    line_bytes?: number | null;
    /**
     * Decoded events of the agent.
     * @default 100000
     */
    events?: number | null;
    /**
     * Resident memory of all programs in the box together, the storage not included.
     * @default 4294967296
     */
    memory_bytes?: number | null;
    /**
     * Processes and threads in the box.
     * @default 4096
     */
    pids?: number | null;
    /**
     * Requests to the vendor.
     * @default 500
     */
    requests?: number | null;
    /**
     * Ceiling of max_tokens in one request.
     * @default 64000
     */
    max_tokens?: number | null;
    /**
     * Tokens in and out of all requests together, as the vendor counts them; 0: not limited.
     * @default 0
     */
    tokens?: number | null;
    /**
     * Cost by the price table, in millionths of a US dollar; 0: not limited. A model without a known price is
     * then refused.
     * @default 0
     */
    cost_usd_micros?: number | null;
    /**
     * Requests at the vendor at a time; further ones are answered 429.
     * @default 32
     */
    parallel_requests?: number | null;
  } | null;
  /**
   * The only way out of the box. "claude" needs "anthropic", "codex" needs "openai".
   * @default "none"
   */
  egress?: "none" | "anthropic" | "openai" | null;
  /**
   * What a program in the box may reach beside the vendor, through a proxy inside the box: the allow-list
   * mode. Nothing by default. Each host and port at most once.
   */
  destinations?: Array<{
    /** A host name in lower case (RFC 1123); no spelling of an address. */
    host: string;
    /** @default 443 */
    port?: number | null;
    /**
     * Plain HTTP (GET and HEAD) instead of a tunnel for TLS.
     * @default false
     */
    plain?: boolean | null;
    /** CIDR ranges, one of which each address of the host must lie in. None: global addresses only. */
    addresses?: string[] | null;
    /**
     * Bytes from the box, in the whole attempt.
     * @default 67108864
     */
    max_sent?: number | null;
    /**
     * Bytes to the box, in the whole attempt.
     * @default 4294967296
     */
    max_received?: number | null;
    /**
     * Name of a destination in the user's configuration, for this very host and port, whose credential the
     * gateway sets. TLS is then the gateway's, and the box asks in plain HTTP. At most 8 in one invocation;
     * not with plain.
     */
    credential?: string | null;
  }> | null;
  /**
   * Required for every agent but "command"; the gateway lets no other model through. Without egress there is
   * none.
   */
  model?: string | null;
  /** @default "native" */
  backend?: "native" | "docker" | null;
  /** The pinned root file system. None: the host's /usr. */
  image?: string | null;
  /**
   * Whether programs other than the agent's own can be executed in the box.
   * @default "sandboxed"
   */
  shell?: "sandboxed" | "none" | null;
  /**
   * What to do when the host's configured capacity is taken.
   * @default "queue"
   */
  when_full?: "queue" | "refuse" | null;
};

/** cofferdam.plan-answer/1 */
export type PlanAnswer = {
  /** What the plan achieves, in a few sentences. */
  summary: string;
  /** The work in the order in which it is done; at least one step. */
  steps: Array<{
    /** One line. */
    title: string;
    /** What to change, where, and how it is known to be right. */
    detail: string;
  }>;
  /** Paths that the work touches, relative to the repository. */
  files: string[];
  /** What could go wrong, one line each. */
  risks: string[];
  /** Commands that the work would need; proposals, never grants. */
  commands: string[];
};

/**
 * cofferdam.result/1: The terminal record of one attempt, written once. Every key is always there, but
 * records of earlier programs lack those that are not required; null says that there is no value. Counts are
 * at most 2^53-1. Texts hold no NUL.
 */
export type Result = {
  schema: "cofferdam.result/1";
  attempt_id: string;
  /** Of the canonical encoding of the invocation. */
  invocation_sha256: string;
  phase: "planning" | "question" | "review" | "implementation";
  outcome: "completed" | "failed" | "refused" | "limit" | "cancelled" | "setup-failed" | "lost";
  /** The first cause; later ones never overwrite it. */
  cause: {
    /** What ended the attempt: "exit", "deadline", "cancel", a control's name, ... */
    control: string;
    /** One line for people. */
    detail: string;
    at: string;
  };
  /** The agent's main process, as the kernel gave it. */
  process: {
    exit_code: number | null;
    signal: number | null;
    started_at: string | null;
    ended_at: string | null;
  };
  cancel: {
    requested_at: string;
    by: "signal" | "stdin" | "command";
    reason: string;
  } | null;
  settlement: {
    box_gone_at: string | null;
    /** The grace ran out, or processes were left when the program had ended. */
    killed: boolean;
    /** From the first cause to the box gone. */
    took_ms: number;
    /** Outcome lost: what could not be ended. */
    left: string[];
  };
  /** When the agent's final answer was read. */
  answered_at: string | null;
  /** What the program printed. Head and tail of each stream are kept. */
  output: {
    stdout_bytes: number;
    stderr_bytes: number;
    /** Of both: neither in the head nor in the tail that is kept. */
    dropped_bytes: number;
    /** Of the agent's event stream: over the bound of one line. */
    dropped_lines: number;
    /** Decoded, recorded or not. */
    events: number;
  };
  /**
   * Where the work lies while the attempt runs. A tmpfs survives the supervisor, for the time that it is
   * kept, and neither its keeper nor the machine.
   */
  storage: {
    /**
     * tmpfs (memory), image (a file system of its own on the host's disk) or slot (one that was prepared
     * once).
     */
    kind: string;
    kept_ms: number;
    /** How the work tree came into it: overlay, read-only or checkout. */
    tree?: string | null;
    /** Why it was not what had been planned; empty when it was. */
    tree_reason?: string;
  } | null;
  /** The supervisor had gone, and somebody else closed the account. */
  recovery: {
    at: string;
    /** The last step that the supervisor had recorded. */
    stage: string;
  } | null;
  /** Text, or the checked JSON of a plan. Written by the agent. */
  answer: string | null;
  /** Printable. Written by the agent. */
  summary: string;
  change: {
    /** The trusted head, or Cofferdam's own commit of the caller's uncommitted files on top of it. */
    base: string | null;
    commit: string | null;
    tree: string | null;
    /** Null unless published. */
    ref: string | null;
    /** The first 10000 at most, and at most 4 MiB of them; file_count has the true number. */
    files: Array<{
      /** Bytes that are not UTF-8 are U+FFFD here. */
      path: string;
      status: "added" | "modified" | "deleted" | "type-changed";
    }>;
    file_count: number;
    /** What of the work tree could not go into the change as it was. */
    findings: Array<{
      rule: string;
      path: string;
      action: "reported" | "dropped" | "refused";
    }>;
    ignored_files: number;
    /** Beyond those that are listed. */
    more_findings?: number;
    /** The first of the ignored files, which are not carried. */
    ignored?: string[];
    /**
     * Of Cofferdam's own, in order: checkpoints, then what was there at the end. The last one is `commit`.
     */
    commits?: Array<{
      commit: string;
      tree: string;
      at: string;
      by: "command" | "agent" | "end";
    }>;
  };
  /** Reserved. */
  checks: unknown[];
  usage: {
    requests: number;
    tokens: {
      input: number;
      output: number;
    };
    /** Of the tokens that the vendor counted, by the price table. Null when the model has no known price. */
    cost_usd: number | null;
    /** As the agent itself reports it. */
    agent_cost_usd: number | null;
  };
  resources: {
    /**
     * Bytes, resident. The largest of: one process as the kernel counted it, all together as they were
     * sampled.
     */
    peak_memory: number;
    /** Processes and threads, as they were sampled. */
    peak_pids: number;
    cpu_ms: number;
    work_bytes: number;
    work_inodes: number;
  };
  egress: {
    requests: number;
    denied: number;
    /**
     * Every destination of the invocation, with the bytes of each direction as the box's side counts them.
     */
    destinations: Array<{
      host: string;
      port: number;
      connections: number;
      denied: number;
      sent: number;
      received: number;
    }>;
  };
  /** Which controls were in force on this very attempt. */
  controls: Array<{
    name: string;
    required: boolean;
    enforced: boolean;
    /** How it is known: a probe and from where, or by construction. */
    proof: string;
  }>;
  publication: {
    state: "published" | "none" | "failed" | "stale";
    reason: string;
  };
  /** Reserved. */
  parent: null;
  /** Reserved. */
  setup_layer: null;
  /** Tools that the vendor runs itself and that the user's configuration had opted in to. */
  vendor_tools: string[];
  /**
   * sandboxed: the host's programs could run inside the box. none: nothing but the agent's own programs could
   * be executed.
   */
  shell: "sandboxed" | "none";
  agent: {
    name: string;
    /** As pinned; null for "command". */
    version: string | null;
    model: string | null;
  };
  image: {
    /** "host": the host's /usr. "image": a pinned image. */
    kind: string;
    /** Whether the control pinned-root was in force. */
    pinned: boolean;
    /** Of an image: its name. */
    digest?: string;
  };
  backend: "native" | "docker";
  /** Where the gateway sent requests; null without egress. */
  vendor_upstream: string | null;
  clone: {
    repository: string;
    head: string;
    tree: string;
    object_format: "sha1" | "sha256";
    /** Over repository, head and tree. */
    id: string;
    /** What the attempt worked on: the head, or Cofferdam's own commit on top of it. */
    base?: string;
    history?: "full" | "none";
  } | null;
  /** What the repository was like. Nothing decides by it. */
  source?: {
    kind: "work-tree" | "linked-work-tree" | "submodule" | "bare";
    shallow: boolean;
    partial: boolean;
    /** Tracked files that differ from the head. */
    dirty_files: number;
    /** Not ignored. */
    untracked_files: number;
    /** Preserved, never entered. */
    submodules: number;
    /** Pointers stay pointers. */
    lfs_files: number;
  } | null;
  context: {
    name: string;
    version: number;
    sha256: string;
    files: Array<{
      path: string;
      sha256: string;
    }>;
  } | null;
  /** Reserved. */
  instructions: unknown[];
  created_at: string;
  /** Head of the ledger's hash chain, the result itself not included. */
  chain_head: string | null;
};
