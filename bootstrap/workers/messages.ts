import type { MeasuredProcess } from '../wiring/telemetry.ts';

/** What a supervisor tells a worker; a connection comes with the first. */
export type ToWorker =
  | { readonly type: 'connection' }
  /** It is to say what it measured. */
  | { readonly type: 'measure'; readonly id: number }
  /** What all workers measured, as it asked; undefined when that is not to be had. */
  | { readonly type: 'metrics'; readonly id: number; readonly text: string | undefined }
  | { readonly type: 'drain' }
  | { readonly type: 'stop' };

/** What a worker tells its supervisor. */
export type FromWorker =
  | { readonly type: 'ready' }
  /** It ends. @param message for the operator. */
  | { readonly type: 'failed'; readonly message: string }
  /** The connection that was sent is here. */
  | { readonly type: 'taken' }
  | { readonly type: 'measured'; readonly id: number; readonly metrics: MeasuredProcess }
  /** Somebody asks it for the metrics of all. */
  | { readonly type: 'read-metrics'; readonly id: number };

/** The only argument of a worker: whether it does what one of them does for all at the start of the service. */
export const FIRST = 'first';
export const FURTHER = 'further';
