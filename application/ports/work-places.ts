/** What this process works on at the same time is bounded, and shared out between tenants. */
export abstract class WorkPlaces {
  /**
   * Runs what neither this thread nor the database does, such as the call of a backend. The request under way gives its
   * place to others meanwhile, and has one again when this is over: nobody's slow backend makes others wait.
   */
  abstract elsewhere<T>(work: () => Promise<T>): Promise<T>;
}
