import type { Response } from 'express';
import type { Log, LogContext } from '../../../application/ports/log.ts';
import { StoreUnavailableError } from '../../../application/ports/store.ts';
import { Failure, type FailureCode, OperatorReason } from '../../../domain/shared/failure.ts';
import type { Reply, StreamItem, Surface } from '../route.ts';
import { type Audience, type Rendered, renderFailure, renderUnexpected } from './failures.ts';

export function requestIdOf(response: Response): string {
  return String(response.getHeader('X-Request-Id'));
}

/** Token endpoint of the administrative interface; its clients are not wallets. */
const CLIENT_TOKEN_PATH = '/oauth2/token';

/** Context of the log lines of this request. */
export function aboutOf(response: Response): LogContext {
  return (response.locals['about'] as LogContext | undefined) ?? {};
}

export function send(response: Response, answer: Reply, surface: Surface): void {
  response.statusCode = answer.status;
  if (surface !== 'document') response.setHeader('Cache-Control', 'no-store');
  for (const [name, value] of Object.entries(answer.headers ?? {})) response.setHeader(name, value);
  if ('events' in answer) void sendEvents(response, answer.events);
  else if ('json' in answer) {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(answer.json));
  } else if ('text' in answer) {
    response.setHeader('Content-Type', answer.contentType);
    // Node leaves the body out for HEAD.
    response.setHeader('Content-Length', Buffer.byteLength(answer.text));
    response.end(answer.text);
  } else response.end();
}

const NO_DATABASE = new Failure('unavailable', {
  message: 'the service cannot use its database at present; try again',
  retryAfterSeconds: 5,
});

export function fail(response: Response, error: unknown, audience: Audience, log: Log): void {
  const requestId = requestIdOf(response);
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const route = String(response.locals['route'] ?? '');
  const rendered = log.within(aboutOf(response), () => renderAndLog(error, { requestId, route }, audience, log));
  // The code appears in the log line of the request.
  if (error instanceof Failure) aboutOf(response)['code'] = error.code;
  response.statusCode = rendered.status;
  for (const [name, value] of Object.entries(rendered.headers)) response.setHeader(name, value);
  response.setHeader('Content-Type', rendered.contentType);
  response.end(typeof rendered.body === 'string' ? rendered.body : JSON.stringify(rendered.body));
}

type RequestNames = { readonly requestId: string; readonly route: string };

function renderAndLog(error: unknown, { requestId, route }: RequestNames, audience: Audience, log: Log): Rendered {
  if (error instanceof Failure) {
    const { cause, code, message } = error;
    // Only messages of failures are known to contain no secrets and no claims.
    const isTold = cause instanceof Failure || cause instanceof OperatorReason;
    const reason = isTold ? { reason: cause.message } : {};
    if (cause !== undefined) log.warn(message, { requestId, route, code, ...reason });
    else if (isRefusal(audience.surface, code))
      log.warn(`a ${route === CLIENT_TOKEN_PATH ? 'client' : 'wallet'} was refused`, { requestId, route, code, reason: message });
    return renderFailure(error, audience, requestId);
  }
  if (error instanceof StoreUnavailableError) {
    log.error(error.message, { requestId, route }, error.cause);
    return renderFailure(NO_DATABASE, audience, requestId);
  }
  log.error('unexpected failure', { requestId, route }, error);
  return renderUnexpected(audience, requestId);
}

/** Failures that belong to the normal flow of wallets or that anonymous callers cause. */
const EXPECTED: readonly FailureCode[] = [
  'use_dpop_nonce',
  'use_attestation_challenge',
  'use_fresh_attestation',
  'issuance_pending',
  'missing_token',
  'not_found',
  'method_not_allowed',
  'too_many_requests',
];

/** Returns true for a rejection whose reason an operator may need. Messages of failures contain no claims. */
function isRefusal(surface: Surface, code: FailureCode): boolean {
  return (surface === 'vci' || surface === 'vp' || surface === 'oauth') && !EXPECTED.includes(code);
}

/** Server-sent events (WHATWG HTML section 9.2). The stream ends when the source ends or the client disconnects. */
async function sendEvents(response: Response, events: AsyncIterable<StreamItem>): Promise<void> {
  response.setHeader('Content-Type', 'text/event-stream');
  response.setHeader('Cache-Control', 'no-store');
  response.setHeader('X-Accel-Buffering', 'no');
  response.flushHeaders();
  try {
    for await (const item of events) {
      if (response.destroyed) break;
      response.write(format(item));
    }
  } finally {
    response.end();
  }
}

function format(item: StreamItem): string {
  if (item === 'heartbeat') return ': keep-alive\n\n';
  const id = item.id === undefined ? '' : `id: ${item.id}\n`;
  return `${id}data: ${JSON.stringify(item.data)}\n\n`;
}
