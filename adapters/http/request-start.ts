import type { Request, Response } from 'express';
import type { Log, LogContext } from '../../application/ports/log.ts';
import type { Metrics } from '../../application/ports/metrics.ts';

/** Sent with every answer; five static fields. */
const SECURITY_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'cross-origin',
} as const;

/** Ids that callers give their requests; anything else is passed over. */
const CALLER_ID = /^[A-Za-z0-9._-]{1,64}$/;

type Watching = { readonly log: Log; readonly metrics?: Metrics | undefined };

let requestCount = 0;
const processPrefix = Date.now().toString(36) + process.pid.toString(36);

/**
 * Gives a request its id and its line in the log. The id is ours: one that callers choose could stand for two requests in
 * the log and in the audit log. Theirs is kept beside it.
 */
export function startRequest(
  request: Request,
  response: Response,
  { log, metrics }: Watching,
  https: boolean,
): void {
  const requestId = `${processPrefix}-${(++requestCount).toString(36)}`;
  response.setHeader('X-Request-Id', requestId);
  const given = request.headers['x-request-id'];
  const callerRequestId = typeof given === 'string' && CALLER_ID.test(given) ? given : undefined;
  if (callerRequestId !== undefined) response.setHeader('X-Caller-Request-Id', callerRequestId);
  for (const name in SECURITY_HEADERS)
    response.setHeader(name, SECURITY_HEADERS[name as keyof typeof SECURITY_HEADERS]);
  if (https) response.setHeader('Strict-Transport-Security', 'max-age=31536000');
  const about: LogContext = { requestId };
  response.locals['about'] = about;
  const started = performance.now();
  response.once('finish', () => {
    // The route's pattern, never the address: addresses carry tokens and codes.
    const milliseconds = performance.now() - started;
    const { method } = request;
    const route = (response.locals['route'] as string | undefined) ?? 'none';
    const status = response.statusCode;
    metrics?.request({ method, route, status, seconds: milliseconds / 1000 });
    log.info('request', {
      ...about,
      ...(callerRequestId !== undefined && { callerRequestId }),
      method,
      route,
      status,
      milliseconds: Math.round(milliseconds * 10) / 10,
    });
  });
}
