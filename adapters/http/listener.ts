import { randomUUID } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Express } from 'express';
import { Failure } from '../../domain/shared/failure.ts';
import { renderFailure } from './failures.ts';

type WithLast = (request: IncomingMessage, response: ServerResponse, last: () => void) => void;

/** What a server listens with: the application, and an answer for addresses that express cannot take apart. */
export function listenerOf(app: Express): RequestListener {
  return (request, response) => (app as unknown as WithLast)(request, response, () => refuse(response));
}

/** No route has seen the request. */
function refuse(response: ServerResponse): void {
  const failure = new Failure('invalid_input', 'the address of the request cannot be read');
  const requestId = randomUUID();
  const { status, headers, contentType, body } = renderFailure(failure, 'admin', requestId);
  response.writeHead(status, { ...headers, 'Content-Type': contentType, 'X-Request-Id': requestId });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}
