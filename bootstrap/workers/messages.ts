/** What a supervisor tells a worker; a connection comes with the first. */
export type ToWorker =
  | { readonly type: 'connection' }
  | { readonly type: 'drain' }
  | { readonly type: 'stop' };

/** What a worker tells its supervisor. */
export type FromWorker =
  | { readonly type: 'ready' }
  /** It ends. @param message for the operator. */
  | { readonly type: 'failed'; readonly message: string }
  /** The connection that was sent is here. */
  | { readonly type: 'taken' };

/** The only argument of a worker: whether it does what one of them does for all at the start of the service. */
export const FIRST = 'first';
export const FURTHER = 'further';
