import type { Request, Response } from 'express';
import type { Log, LogContext } from '../../application/ports/log.ts';

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

let requestCount = 0;
const processPrefix = Date.now().toString(36) + process.pid.toString(36);

/**
 * Gives a request its id and its line in the log. The id is ours: one that callers choose could stand for two requests in
 * the log and in the audit log. Theirs is kept beside it.
 */
export function startRequest(request: Request, response: Response, log: Log, https: boolean): void {
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
    log.info('request', {
      ...about,
      ...(callerRequestId !== undefined && { callerRequestId }),
      method: request.method,
      route: (response.locals['route'] as string | undefined) ?? 'none',
      status: response.statusCode,
      milliseconds: Math.round((performance.now() - started) * 10) / 10,
    });
  });
}
