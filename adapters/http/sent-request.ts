import type { IncomingHttpHeaders } from 'node:http';
import type { Request, Response } from 'express';
import { languagesAsked } from './pages/languages.ts';
import type { RawRequest } from './route.ts';
import { requestIdOf } from './send.ts';

const NOTHING = Buffer.alloc(0);

/**
 * A request as a route sees it. A class, since each object that is written down with accessors of its own gets a description of
 * its own in the engine, which holds what the accessors see (the request, its answer) until old objects are collected.
 */
export class SentRequest implements RawRequest {
  readonly headers: IncomingHttpHeaders;
  readonly requestId: string;
  readonly bytes: Buffer;
  readonly #request: Request;
  readonly #response: Response;

  constructor(request: Request, response: Response) {
    this.headers = request.headers;
    this.requestId = requestIdOf(response);
    this.bytes = Buffer.isBuffer(request.body) ? request.body : NOTHING;
    this.#request = request;
    this.#response = response;
  }

  get rawHeaders(): readonly string[] {
    return this.#request.rawHeaders;
  }

  get languages(): readonly string[] {
    return languagesAsked(this.#request);
  }

  get closed(): AbortSignal {
    const controller = new AbortController();
    this.#response.once('close', () => controller.abort());
    return controller.signal;
  }
}
