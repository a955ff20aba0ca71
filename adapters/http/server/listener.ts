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

type WithLast = (request: IncomingMessage, response: ServerResponse, fallback: () => void) => void;

/**
 * Requests for a route bypass the stack of express, which costs as much as many a response; the application handles the others, and
 * addresses that express cannot parse are rejected. Requests and responses are created with the prototypes of express: it would otherwise
 * change the prototype of each object, which makes every access slower.
 */
export function listenerOf({ app, find, reject: refuse }: Router): Listener {
  class ServedRequest extends http.IncomingMessage {
    #ip: { readonly address: string | undefined } | undefined;
    /** Cached value of express, which inspects the proxies at each access. */
    get ip(): string | undefined {
      this.#ip ??= { address: addressOf(this) };
      return this.#ip.address;
    }
  }
  class ServedResponse extends http.ServerResponse<IncomingMessage> {
    readonly locals = Object.create(null);
  }
  const addressOf = getterOf(app.request, 'ip');
  Object.setPrototypeOf(ServedRequest.prototype, app.request);
  Object.setPrototypeOf(ServedResponse.prototype, app.response);
  const throughExpress: RequestListener = (request, response) =>
    (app as unknown as WithLast)(request, response, () => refuse(request as Request, response as Response));
  const findAnswer: Router['find'] = (request) => valueOrUndefined(() => find(request));
  return {
    IncomingMessage: ServedRequest,
    ServerResponse: ServedResponse as unknown as typeof ServerResponse,
    listen(request, response) {
      const answer = findAnswer(request as Request);
      if (answer === undefined) throughExpress(request, response);
      else answer(request as Request, response as Response);
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
