import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Request, Response } from 'express';
import { valueOrUndefined } from '../../../domain/shared/value-or-undefined.ts';
import type { Router } from './router.ts';

// An `import` would load all exports of the module, some of which load HTTP/2 and `fetch`.
const http = process.getBuiltinModule('node:http');

/** Options of a server: the classes of its requests and responses, and its listener. */
export type Listener = {
  readonly IncomingMessage: typeof IncomingMessage;
  readonly ServerResponse: typeof ServerResponse;
  readonly listen: RequestListener;
};

/** An application of express; it calls `fallback` for requests that it does not handle. */
type ExpressApp = (request: IncomingMessage, response: ServerResponse, fallback: () => void) => void;

/**
 * Creates the server options. Requests for a route bypass the middleware stack of express, which can cost as much as the response itself;
 * express handles all other requests, and those that it passes on are rejected. Requests and responses are created with the prototypes of
 * express: it would otherwise change the prototype of each object, which makes every access slower.
 */
export function listenerOf({ app, find, reject }: Router): Listener {
  class ExpressRequest extends http.IncomingMessage {
    #ip: { readonly address: string | undefined } | undefined;
    /** Caches the address, since express inspects the proxies at each access. */
    get ip(): string | undefined {
      this.#ip ??= { address: addressOf(this) };
      return this.#ip.address;
    }
  }
  class ExpressResponse extends http.ServerResponse<IncomingMessage> {
    readonly locals = Object.create(null);
  }
  const addressOf = getterOf(app.request, 'ip');
  Object.setPrototypeOf(ExpressRequest.prototype, app.request);
  Object.setPrototypeOf(ExpressResponse.prototype, app.response);
  const handleWithExpress: RequestListener = (request, response) =>
    (app as unknown as ExpressApp)(request, response, () => reject(request as Request, response as Response));
  const findHandler: Router['find'] = (request) => valueOrUndefined(() => find(request));
  return {
    IncomingMessage: ExpressRequest,
    ServerResponse: ExpressResponse as unknown as typeof ServerResponse,
    listen(request, response) {
      const handler = findHandler(request as Request);
      if (handler === undefined) handleWithExpress(request, response);
      else handler(request as Request, response as Response);
    },
  };
}

function getterOf(prototype: object, name: string): (target: object) => string | undefined {
  for (let owner: object | null = prototype; owner !== null; owner = Object.getPrototypeOf(owner)) {
    const get = Object.getOwnPropertyDescriptor(owner, name)?.get;
    if (get !== undefined) return (target) => get.call(target) as string | undefined;
  }
  throw new Error(`express has no ${name}`);
}
