import express, { type Express, type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import type { Log, LogContext } from '../../../application/ports/log.ts';
import type { Metrics } from '../../../application/ports/metrics.ts';
import { getOrCreate } from '../../../application/tenant-cache/get-or-create.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { RESERVED_TENANT_IDS } from '../../../domain/tenants/tenant.ts';
import { bodyReader } from '../input/read-body.ts';
import { BodyBudget } from '../limits/body-budget.ts';
import { type RateLimitSettings, RateLimits } from '../limits/rate-limits.ts';
import { PublishedTexts } from '../output/published-texts.ts';
import { fail } from '../output/send.ts';
import type { Route } from '../route.ts';
import { audienceOf } from './browser-pages.ts';
import { dispatcher, type Endpoint } from './dispatch.ts';
import { identify, type Ports, reportUnreadBody, type Server, serve } from './serve.ts';

export type HttpSettings = {
  /** Trusted proxies whose `X-Forwarded-For` is used; false for none. */
  readonly trustProxy: boolean | number | string;
  readonly publicUrl: string;
  readonly rateLimits: RateLimitSettings;
  /** Limit of the bytes of request bodies in memory. */
  readonly bodyMemory: number;
};

export type Router = {
  readonly app: Express;
  /** @returns a handler for a request whose address and method match a route, bypassing the stack of `app`. */
  readonly find: (request: Request) => ((request: Request, response: Response) => void) | undefined;
  /** Rejects a request whose address express cannot parse: no route and no middleware has seen it. */
  readonly reject: (request: Request, response: Response) => void;
};

/** Builds the express application from the route table, in the order of the routes. */
export function buildRouter(routes: readonly Route[], ports: Ports, settings: HttpSettings): Router {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('trust proxy', settings.trustProxy);
  app.set('query parser', 'simple');
  app.set('case sensitive routing', true);
  app.set('strict routing', true);
  const isHttps = settings.publicUrl.startsWith('https:');
  app.use((request, response, next) => {
    startRequest(request, response, ports, isHttps);
    next();
  });
  const rateLimits = new RateLimits(settings.rateLimits);
  const server = { ...ports, rateLimits, publishedTexts: new PublishedTexts() };
  const budget = new BodyBudget(settings.bodyMemory);
  const prefix = new URL(settings.publicUrl).pathname.replace(/\/$/, '');
  const fixed = fixedAddresses(routes, prefix);
  const skipFixedAddress: RequestHandler = (request, _response, next) => next(fixed.has(request.path) ? 'route' : undefined);
  const answering: Endpoint[] = [];
  for (const route of routes) {
    const paths = prefix === '' ? [route.path] : [route.path, publicPath(route.path, prefix)];
    const addEndpoint = (method: string, ...handlers: readonly RequestHandler[]) =>
      answering.push(...paths.map((path) => ({ method, path, handlers })));
    const tenantChecks = [
      ...(route.path.includes(':') ? [skipFixedAddress] : []),
      ...(route.path.startsWith('/:tenant') ? [tenantsOnly] : []),
    ];
    const isOpen = isForAnyOrigin(route);
    if (isOpen) addEndpoint('options', ...tenantChecks, ...preflight(routes.filter(({ path }) => path === route.path)));
    addEndpoint(
      route.method,
      ...tenantChecks,
      ...(servesHead(route) ? [] : [notHead]),
      ...(isOpen ? [allowOrigin] : []),
      ...addressLimit(route, server),
      identify(route, server),
      ...readers(route, budget),
      serve(route, server),
    );
  }
  const find = dispatcher(answering);
  app.use((request, response, next) => {
    const answer = find(request);
    if (answer === undefined) next();
    else answer(request, response, next);
  });
  const reject = (request: Request, response: Response): void => {
    const matchingRoutes = routesAt(routes, request.path, prefix);
    fail(response, noRouteError(matchingRoutes), audienceOf(errorForm(matchingRoutes), request), ports.log);
  };
  app.use(reject);
  // Only body readers reach this handler: express passes errors to handlers with four parameters.
  const failed = (error: unknown, request: Request, response: Response, _next?: unknown): void => {
    fail(response, bodyFailure(error), audienceOf(errorForm(routesAt(routes, request.path, prefix)), request), ports.log);
  };
  app.use((error: unknown, request: Request, response: Response, next: unknown) => failed(error, request, response, next));
  return {
    app,
    reject(request, response) {
      startRequest(request, response, ports, isHttps);
      const unreadable = new Failure('invalid_input', 'the address of the request is malformed');
      fail(response, unreadable, audienceOf(errorForm([]), request), ports.log);
    },
    find(request) {
      const answer = find(request);
      return (
        answer &&
        ((_request, response) => {
          startRequest(request, response, ports, isHttps);
          answer(request, response, (error) => (error === undefined ? reject(request, response) : failed(error, request, response)));
        })
      );
    },
  };
}

/** `/oauth2/token` is not the token endpoint of a tenant `oauth2`: path names of the service are no tenant ids. */
function tenantsOnly(request: Request, _response: Response, next: NextFunction): void {
  next(RESERVED_TENANT_IDS.has(String(request.params['tenant'])) ? 'route' : undefined);
}

/** Express answers HEAD like GET, but some GETs have effects: a secret is shown once, an offer is fetched. */
function servesHead({ surface, path }: Route): boolean {
  return surface === 'document' || path === '/' || /^\/health(\/|$)/.test(path);
}

function notHead(request: Request, _response: Response, next: NextFunction): void {
  next(request.method === 'HEAD' ? 'route' : undefined);
}

/** The body of a caller is not buffered before the token is verified. */
function readers(route: Route, budget: BodyBudget) {
  const reader = bodyReader(route);
  if (reader === undefined) return [];
  const counter = budget.counter(typeof route.access === 'string' ? 'anonymous' : 'authenticated');
  return [counter, route.onUnreadBody === undefined ? reader : reporting(route, reader)];
}

/** Reports a body that could not be read before the caller gets the error. */
function reporting(route: Route, reader: RequestHandler): RequestHandler {
  return (request, response, next) => {
    reader(request, response, (error?: unknown) => {
      if (error === undefined) return next();
      const failure = bodyFailure(error);
      void reportUnreadBody(route, request, response, failure).finally(() => next(failure));
    });
  };
}

function addressLimit(route: Route, { rateLimits, log }: Server) {
  const { rateLimit } = route;
  if (rateLimit?.perAddress !== true) return [];
  return [
    rateLimits.limitAddress(rateLimit.group, (response, error) => {
      fail(response, error, audienceOf(route, response.req), log);
    }),
  ];
}

function bodyFailure(error: unknown): unknown {
  if (error instanceof Failure) return error;
  const { type, limit, status } = error as { type?: unknown; limit?: unknown; status?: unknown };
  if (type === 'entity.too.large') return new Failure('too_large', `this address takes at most ${limit} bytes`);
  if (type === 'encoding.unsupported') return new Failure('unsupported_media_type', 'send the body uncompressed');
  if (type === 'request.aborted' || type === 'request.size.invalid') return new Failure('invalid_request', 'the body is incomplete');
  return error instanceof URIError || status === 400 ? new Failure('not_found', 'unknown address') : error;
}

/** A known address with another method is a 405 that lists the methods (RFC 9110 section 15.5.6). */
function noRouteError(matchingRoutes: readonly Route[]): Failure {
  const allow = [...new Set(matchingRoutes.map((route) => route.method.toUpperCase()))];
  if (allow.length === 0) return new Failure('not_found', 'unknown address');
  return new Failure('method_not_allowed', { message: `use ${allow.join(' or ')}`, allow });
}

function errorForm(matchingRoutes: readonly Route[]): Pick<Route, 'surface'> {
  // Errors of an address without a route have the format of the administrative interface, or are a page for a person.
  return { surface: matchingRoutes[0]?.surface ?? 'document' };
}

/** Finds the routes of an address, for any method. */
function routesAt(routes: readonly Route[], path: string, prefix: string): readonly Route[] {
  const inside = insidePath(path, prefix);
  const isTenants = !RESERVED_TENANT_IDS.has(inside.split('/', 2)[1] ?? '');
  const fixed = routes.filter((route) => route.path === inside);
  if (fixed.length > 0) return fixed;
  return routes.filter((route) => (isTenants || !route.path.startsWith('/:tenant')) && patternOf(route.path).test(inside));
}

/** Addresses without parameters, also behind the path of the public address. */
function fixedAddresses(routes: readonly Route[], prefix: string): ReadonlySet<string> {
  const paths = routes.map(({ path }) => path).filter((path) => !path.includes(':'));
  return new Set(prefix === '' ? paths : [...paths, ...paths.map((path) => publicPath(path, prefix))]);
}

const WELL_KNOWN = /^(\/\.well-known\/[^/]+)(\/.*)$/;

/** The path of an identifier follows the well-known name (RFC 8414 section 3.1); for all other addresses it comes first. */
function publicPath(path: string, prefix: string): string {
  const [, name = '', suffix = path] = WELL_KNOWN.exec(path) ?? [];
  return name + prefix + suffix;
}

/** Undoes `publicPath`. */
function insidePath(path: string, prefix: string): string {
  const [, name = '', suffix = path] = WELL_KNOWN.exec(path) ?? [];
  return suffix.startsWith(`${prefix}/`) ? name + suffix.slice(prefix.length) : path;
}

const patterns = new Map<string, RegExp>();

function patternOf(path: string): RegExp {
  const source = () => path.replaceAll('.', '\\.').replaceAll(/:[A-Za-z]+/g, '[^/]+');
  return getOrCreate(patterns, path, () => new RegExp(`^${source()}$`));
}

/** Headers that wallets send (RFC 9449, attestation-based client authentication). */
const REQUEST_HEADERS = 'Authorization, Content-Type, DPoP, OAuth-Client-Attestation, OAuth-Client-Attestation-PoP';
/** Response headers that wallets read. */
const RESPONSE_HEADERS = 'DPoP-Nonce, OAuth-Client-Attestation-Challenge, Retry-After, WWW-Authenticate, X-Request-Id';

/**
 * Returns true if scripts of any origin may call a route (Fetch standard section 3.2, CORS protocol): routes for wallets, since wallets may
 * be web pages, and public documents. None of them relies on cookies, so a browser gives a page no access that it would not have anyway.
 * Routes for administrators and pages for persons are excluded.
 */
function isForAnyOrigin({ surface, path }: Route): boolean {
  return surface !== 'admin' && surface !== 'page' && !path.startsWith('/oauth2/');
}

function allowOrigin(_request: Request, response: Response, next: NextFunction): void {
  response.setHeader('Access-Control-Allow-Origin', '*');
  response.setHeader('Access-Control-Expose-Headers', RESPONSE_HEADERS);
  next();
}

/** Answers the preflight request of a browser before a script sends more than a plain form to the routes of an address. */
function preflight(routes: readonly Route[]): readonly RequestHandler[] {
  const methods = [...new Set(routes.map(({ method }) => method.toUpperCase()))].join(', ');
  const answer: RequestHandler = (_request, response) => {
    response.setHeader('Access-Control-Allow-Methods', methods);
    response.setHeader('Access-Control-Allow-Headers', REQUEST_HEADERS);
    response.setHeader('Access-Control-Max-Age', '600');
    response.statusCode = 204;
    response.end();
  };
  return [allowOrigin, answer];
}

/** Static headers of every response. */
const SECURITY_HEADERS = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'cross-origin',
} as const;

/** Valid request ids of callers; other values are ignored. */
const CALLER_ID = /^[A-Za-z0-9._-]{1,64}$/;

type Observers = { readonly log: Log; readonly metrics?: Metrics | undefined };

let requestCount = 0;
const processPrefix = Date.now().toString(36) + process.pid.toString(36);

/**
 * Gives a request its id and its log line. The id is generated: an id chosen by callers could stand for two requests in the log and in the
 * audit log. The caller's id is logged beside it.
 */
function startRequest(request: Request, response: Response, { log, metrics }: Observers, https: boolean): void {
  const requestId = `${processPrefix}-${(++requestCount).toString(36)}`;
  response.setHeader('X-Request-Id', requestId);
  const callerId = request.headers['x-request-id'];
  const callerRequestId = typeof callerId === 'string' && CALLER_ID.test(callerId) ? callerId : undefined;
  if (callerRequestId !== undefined) response.setHeader('X-Caller-Request-Id', callerRequestId);
  for (const name in SECURITY_HEADERS) response.setHeader(name, SECURITY_HEADERS[name as keyof typeof SECURITY_HEADERS]);
  if (https) response.setHeader('Strict-Transport-Security', 'max-age=31536000');
  const context: LogContext = { requestId };
  response.locals['about'] = context;
  const started = performance.now();
  response.once('finish', () => {
    // The log names the pattern of the route, never the address, which may contain tokens and codes.
    const milliseconds = performance.now() - started;
    const { method } = request;
    const route = (response.locals['route'] as string | undefined) ?? 'none';
    const status = response.statusCode;
    metrics?.request({ method, route, status, seconds: milliseconds / 1000 });
    log.info('request', {
      ...context,
      ...(callerRequestId !== undefined && { callerRequestId }),
      method,
      route,
      status,
      milliseconds: Math.round(milliseconds * 10) / 10,
    });
  });
}
