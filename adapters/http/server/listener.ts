import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Request, Response } from 'express';
import { valueOrUndefined } from '../../../domain/shared/value-or-undefined.ts';
import type { Router } from './router.ts';

// An `import` would read all that the module exports, and some of it brings HTTP/2 and `fetch` along.
const http = process.getBuiltinModule('node:http');

/** What a server is made with: the classes of its requests and answers, and what it listens with. */
export type Listener = {
  readonly IncomingMessage: typeof IncomingMessage;
  readonly ServerResponse: typeof ServerResponse;
  readonly listen: RequestListener;
};

type WithLast = (request: IncomingMessage, response: ServerResponse, last: () => void) => void;

/**
 * What a route answers goes to it without the stack of express, which costs as much as many an answer; the application has the
 * rest, and there is an answer for addresses that express cannot take apart. Requests and answers are made with what express gives
 * them: it would change each of them into another kind of object, and all that is done with those is slower.
 */
export function listenerOf({ app, find, refuse }: Router): Listener {
  class ServedRequest extends http.IncomingMessage {
    #ip: { readonly address: string | undefined } | undefined;
    /** That of express, which looks at the proxies in front each time. */
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
  const found: Router['find'] = (request) => valueOrUndefined(() => find(request));
  return {
    IncomingMessage: ServedRequest,
    ServerResponse: ServedResponse as unknown as typeof ServerResponse,
    listen(request, response) {
      const answer = found(request as Request);
      if (answer === undefined) throughExpress(request, response);
      else answer(request as Request, response as Response);
    },
  };
}

function getterOf(prototype: object, name: string): (of: object) => string | undefined {
  for (let owner: object | null = prototype; owner !== null; owner = Object.getPrototypeOf(owner)) {
    const get = Object.getOwnPropertyDescriptor(owner, name)?.get;
    if (get !== undefined) return (of) => get.call(of) as string | undefined;
  }
  throw new Error(`express has no ${name}`);
}
