// Events on their way from the program to whoever iterates over them.
import type { Event } from "./types.js";

const maxQueuedBytes = 8 * 2 ** 20;

/**
 * Holds 8 MiB of lines, and the one that goes beyond. When it is full, put() waits for the consumer: the pipe
 * fills, and the program waits in its write. That may not hold up the end of the attempt, so a consumer that
 * takes nothing for ten seconds, or is not there, loses events instead.
 */
export class EventQueue {
  /** Events that were left out because nobody took them in time. */
  dropped = 0;
  #items: Array<{ event: Event; bytes: number }> = [];
  #bytes = 0;
  #ended = false;
  // Only a reading consumer is waited for; hurried and discarded are for good.
  #consumer: "none" | "reading" | "stalled" | "hurried" | "discarded" = "none";
  #wakeConsumer = () => {};
  #wakeProducer = () => {};

  constructor(readonly maxStallMs = 10_000) {}

  /** From now on somebody takes events. */
  open(): void {
    if (this.#consumer === "none") this.#consumer = "reading";
  }

  /** Nobody is waited for any more: what does not fit is left out. */
  hurry(): void {
    if (this.#consumer !== "discarded") this.#consumer = "hurried";
    this.#wakeProducer();
  }

  /** Nobody will take any more. */
  discard(): void {
    this.#consumer = "discarded";
    this.#items = [];
    this.#bytes = 0;
    this.#wakeProducer();
  }

  async put(event: Event, bytes: number): Promise<void> {
    while (this.#full() && this.#consumer === "reading") await this.#room();
    if (this.#consumer === "discarded") return;
    if (this.#full()) {
      this.dropped += 1;
      return;
    }
    this.#items.push({ event, bytes });
    this.#bytes += bytes;
    this.#wakeConsumer();
  }

  end(): void {
    this.#ended = true;
    this.#wakeConsumer();
  }

  /** The next event; undefined when there will be none. One call at a time. */
  async take(): Promise<Event | undefined> {
    if (this.#consumer === "stalled") this.#consumer = "reading";
    while (this.#items.length === 0 && !this.#ended) {
      await new Promise<void>((resolve) => (this.#wakeConsumer = resolve));
    }
    const item = this.#items.shift();
    this.#bytes -= item?.bytes ?? 0;
    this.#wakeProducer();
    return item?.event;
  }

  #full(): boolean {
    return this.#bytes >= maxQueuedBytes;
  }

  async #room(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#wakeProducer = resolve;
      timer = setTimeout(() => {
        this.#consumer = "stalled";
        resolve();
      }, this.maxStallMs);
    });
    clearTimeout(timer);
  }
}
