/** The number of requests that this process handles at the same time is bounded, and shared out between tenants. */
export abstract class RequestSlots {
  /**
   * Runs work that uses neither this thread nor the database, such as a call of a backend. The current request releases its slot
   * meanwhile and acquires one again afterwards, so that slow backends do not delay other requests.
   */
  abstract releaseSlotWhile<T>(work: () => Promise<T>): Promise<T>;
}
