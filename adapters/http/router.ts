import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import type { Log } from '../../application/ports/log.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { RESERVED_TENANT_IDS } from '../../domain/tenants/tenant.ts';
import { publicPath, routesAt } from './addresses.ts';
import { type RateLimitSettings, RateLimits } from './rate-limits.ts';
import { bodyReader } from './read-body.ts';
import type { Route, Surface } from './route.ts';
import { fail } from './send.ts';
import { type Ports, type Server, serve } from './serve.ts';

export type HttpSettings = {
  /** Proxies in front whose `X-Forwarded-For` is believed; false for none. */
  readonly trustProxy: boolean | number | string;
  readonly publicUrl: string;
  readonly rateLimits: RateLimitSettings;
};

/** Sent with every answer; five static fields. */
const SECURITY_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'cross-origin',
} as const;

/** Builds the express application from the route table. Routes stand in the order in which they are given. */
export function buildRouter(routes: readonly Route[], ports: Ports, settings: HttpSettings): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('trust proxy', settings.trustProxy);
  app.set('query parser', 'simple');
  app.set('case sensitive routing', true);
  app.use((request, response, next) => {
    begin(request, response, ports.log, settings.publicUrl.startsWith('https:'));
    next();
  });
  const rateLimits = new RateLimits(settings.rateLimits);
  const server = { ...ports, rateLimits };
  const prefix = new URL(settings.publicUrl).pathname.replace(/\/$/, '');
  for (const route of routes) {
    const reader = bodyReader(route);
    const paths = prefix === '' ? [route.path] : [route.path, publicPath(route.path, prefix)];
    const handler = (request: Request, response: Response) => serve(route, request, response, server);
    if (route.anyOrigin === true) app.options(paths, allowOrigin, preflight);
    app[route.method](
      paths,
      ...(route.path.startsWith('/:tenant') ? [tenantsOnly] : []),
      ...(servesHead(route) ? [] : [notHead]),
      ...(route.anyOrigin === true ? [allowOrigin] : []),
      ...addressLimit(route, server),
      ...(reader ? [reader] : []),
      handler,
    );
  }
  app.use((request, response) => {
    const there = routesAt(routes, request.path, prefix);
    fail(response, unserved(there), surfaceOf(there), ports.log);
  });
  // Only body readers get here: express hands their errors to the handler with four parameters.
  app.use((error: unknown, request: Request, response: Response, _next: unknown) => {
    fail(response, bodyFailure(error), surfaceOf(routesAt(routes, request.path, prefix)), ports.log);
  });
  return app;
}

/** `/oauth2/token` is not the token endpoint of a tenant called oauth2: the service's own names are no tenants. */
function tenantsOnly(request: Request, _response: Response, next: NextFunction): void {
  next(RESERVED_TENANT_IDS.has(String(request.params['tenant'])) ? 'route' : undefined);
}

/** Express answers HEAD like GET, but some of our GETs do something: a secret is shown once, an offer is fetched. */
function servesHead({ surface, path }: Route): boolean {
  return surface === 'document' || path === '/' || path === '/health';
}

function notHead(request: Request, _response: Response, next: NextFunction): void {
  next(request.method === 'HEAD' ? 'route' : undefined);
}

function addressLimit(route: Route, { rateLimits, log }: Server) {
  const { rateLimit, surface } = route;
  if (rateLimit?.perAddress !== true) return [];
  return [rateLimits.ofAddress(rateLimit.group, (response, error) => fail(response, error, surface, log))];
}

function allowOrigin(_request: Request, response: Response, next: NextFunction): void {
  response.setHeader('Access-Control-Allow-Origin', '*');
  next();
}

/** Fetch standard section 3.3: what a script asks before it sends JSON. */
function preflight(_request: Request, response: Response): void {
  response.setHeader('Access-Control-Allow-Methods', 'GET, POST');
  response.setHeader('Access-Control-Allow-Headers', 'Content-Type');
  response.setHeader('Access-Control-Max-Age', '600');
  response.statusCode = 204;
  response.end();
}

let requestCount = 0;
const processPrefix = Date.now().toString(36) + process.pid.toString(36);

function begin(request: Request, response: Response, log: Log, https: boolean): void {
  const given = request.headers['x-request-id'];
  const requestId =
    typeof given === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(given)
      ? given
      : `${processPrefix}-${(++requestCount).toString(36)}`;
  response.setHeader('X-Request-Id', requestId);
  for (const name in SECURITY_HEADERS)
    response.setHeader(name, SECURITY_HEADERS[name as keyof typeof SECURITY_HEADERS]);
  if (https) response.setHeader('Strict-Transport-Security', 'max-age=31536000');
  const started = performance.now();
  response.once('finish', () => {
    // The route's pattern, never the address: addresses carry tokens and codes.
    log.info('request', {
      requestId,
      method: request.method,
      route: (response.locals['route'] as string | undefined) ?? 'none',
      status: response.statusCode,
      milliseconds: Math.round((performance.now() - started) * 10) / 10,
    });
  });
}

function bodyFailure(error: unknown): unknown {
  const { type, limit, status } = error as { type?: unknown; limit?: unknown; status?: unknown };
  if (type === 'entity.too.large') {
    return new Failure('too_large', `this address takes at most ${limit} bytes`);
  }
  if (type === 'encoding.unsupported') {
    return new Failure('unsupported_media_type', 'send the body uncompressed');
  }
  if (type === 'request.aborted' || type === 'request.size.invalid') {
    return new Failure('invalid_request', 'the body did not arrive whole');
  }
  return error instanceof URIError || status === 400 ? new Failure('not_found', 'unknown address') : error;
}

/** RFC 9110 section 15.5.6: a known address with another method is 405 and names the methods. */
function unserved(there: readonly Route[]): Failure {
  const allow = [...new Set(there.map((route) => route.method.toUpperCase()))];
  if (allow.length === 0) return new Failure('not_found', 'unknown address');
  return new Failure('method_not_allowed', { message: `use ${allow.join(' or ')}`, allow });
}

function surfaceOf(there: readonly Route[]): Surface {
  return there[0]?.surface ?? 'admin';
}
