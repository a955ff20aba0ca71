import type { buildConnector as BuildConnector, Dispatcher, Pool as UndiciPool } from 'undici';
import { loadUndici, UNDICI_PARTS } from './load-undici.ts';

/** Parts of undici that calls need, with the types of its main file. */
export const buildConnector = loadUndici(UNDICI_PARTS.connect) as typeof BuildConnector;
export const Pool = loadUndici(UNDICI_PARTS.pool) as typeof UndiciPool;
export type Pool = UndiciPool;

type Request = (this: Dispatcher, options: Dispatcher.RequestOptions) => Promise<Dispatcher.ResponseData>;
const { request: requestOf } = loadUndici(UNDICI_PARTS.api) as { readonly request: Request };

/** `Dispatcher.request`, which the main file of undici adds to its classes. */
export function request(dispatcher: Dispatcher, options: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData> {
  return requestOf.call(dispatcher, options);
}
