import type { MeasuredProcess } from '../wiring/telemetry.ts';

/** Messages of a supervisor to a worker; the first kind carries a connection. */
export type ToWorker =
  | { readonly type: 'connection' }
  /** The worker is to report its metrics. */
  | { readonly type: 'measure'; readonly id: number }
  /** The metrics of all workers, in response to `read-metrics`; undefined when they are not available. */
  | { readonly type: 'metrics'; readonly id: number; readonly text: string | undefined }
  | { readonly type: 'drain' }
  | { readonly type: 'stop' };

export type FromWorker =
  | { readonly type: 'ready' }
  /** The worker ends. @param message for the operator. */
  | { readonly type: 'failed'; readonly message: string }
  /** The worker has received the connection. */
  | { readonly type: 'taken' }
  | { readonly type: 'measured'; readonly id: number; readonly metrics: MeasuredProcess }
  /** The worker requests the metrics of all workers. */
  | { readonly type: 'read-metrics'; readonly id: number };

/** The only argument of a worker tells whether it performs the tasks of the first process of a service. */
export const FIRST_WORKER = 'first';
export const FURTHER_WORKER = 'further';
