import express, { type Express, type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import type { Log, LogContext } from '../../../application/ports/log.ts';
import type { Metrics } from '../../../application/ports/metrics.ts';
import { madeOnce } from '../../../application/tenant-cache/made-once.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { RESERVED_TENANT_IDS } from '../../../domain/tenants/tenant.ts';
import { bodyReader } from '../input/read-body.ts';
import { BodyBudget } from '../limits/body-budget.ts';
import { type RateLimitSettings, RateLimits } from '../limits/rate-limits.ts';
import { PublishedTexts } from '../output/published-texts.ts';
import { fail } from '../output/send.ts';
import type { Route } from '../route.ts';
import { audienceOf } from './browser-pages.ts';
import { type Answering, dispatcher } from './dispatch.ts';
import { identify, type Ports, reportUnreadBody, type Server, serve } from './serve.ts';

export type HttpSettings = {
  /** Proxies in front whose `X-Forwarded-For` is believed; false for none. */
  readonly trustProxy: boolean | number | string;
  readonly publicUrl: string;
  readonly rateLimits: RateLimitSettings;
  /** Bytes of request bodies that are held at once. */
  readonly bodyMemory: number;
};

export type Router = {
  readonly app: Express;
  /** @returns what answers a request whose address and method are those of a route, without the stack of `app`. */
  readonly find: (request: Request) => ((request: Request, response: Response) => void) | undefined;
  /** Answers a request whose address express cannot take apart: no route and no middleware has seen it. */
  readonly refuse: (request: Request, response: Response) => void;
};

/** Builds the express application from the route table. Routes stand in the order in which they are given. */
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
  const named: RequestHandler = (request, _response, next) => next(fixed.has(request.path) ? 'route' : undefined);
  const answering: Answering[] = [];
  for (const route of routes) {
    const paths = prefix === '' ? [route.path] : [route.path, publicPath(route.path, prefix)];
    const at = (method: string, ...handlers: readonly RequestHandler[]) =>
      answering.push(...paths.map((path) => ({ method, path, handlers })));
    const ofTenants = [...(route.path.includes(':') ? [named] : []), ...(route.path.startsWith('/:tenant') ? [tenantsOnly] : [])];
    const isOpen = isForAnyOrigin(route);
    if (isOpen) at('options', ...ofTenants, ...preflight(routes.filter(({ path }) => path === route.path)));
    at(
      route.method,
      ...ofTenants,
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
  const refuse = (request: Request, response: Response): void => {
    const there = routesAt(routes, request.path, prefix);
    fail(response, unserved(there), audienceOf(errorForm(there), request), ports.log);
  };
  app.use(refuse);
  // Only body readers get here: express hands their errors to the handler with four parameters.
  const failed = (error: unknown, request: Request, response: Response, _next?: unknown): void => {
    fail(response, bodyFailure(error), audienceOf(errorForm(routesAt(routes, request.path, prefix)), request), ports.log);
  };
  app.use((error: unknown, request: Request, response: Response, next: unknown) => failed(error, request, response, next));
  return {
    app,
    refuse(request, response) {
      startRequest(request, response, ports, isHttps);
      const unreadable = new Failure('invalid_input', 'the address of the request cannot be read');
      fail(response, unreadable, audienceOf(errorForm([]), request), ports.log);
    },
    find(request) {
      const answer = find(request);
      return (
        answer &&
        ((_request, response) => {
          startRequest(request, response, ports, isHttps);
          answer(request, response, (error) => (error === undefined ? refuse(request, response) : failed(error, request, response)));
        })
      );
    },
  };
}

/** `/oauth2/token` is not the token endpoint of a tenant called oauth2: the service's own names are no tenants. */
function tenantsOnly(request: Request, _response: Response, next: NextFunction): void {
  next(RESERVED_TENANT_IDS.has(String(request.params['tenant'])) ? 'route' : undefined);
}

/** Express answers HEAD like GET, but some of our GETs do something: a secret is shown once, an offer is fetched. */
function servesHead({ surface, path }: Route): boolean {
  return surface === 'document' || path === '/' || /^\/health(\/|$)/.test(path);
}

function notHead(request: Request, _response: Response, next: NextFunction): void {
  next(request.method === 'HEAD' ? 'route' : undefined);
}

/** Nothing is held of a caller's body before its token is known. */
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
    rateLimits.ofAddress(rateLimit.group, (response, error) => {
      fail(response, error, audienceOf(route, response.req), log);
    }),
  ];
}

function bodyFailure(error: unknown): unknown {
  if (error instanceof Failure) return error;
  const { type, limit, status } = error as { type?: unknown; limit?: unknown; status?: unknown };
  if (type === 'entity.too.large') return new Failure('too_large', `this address takes at most ${limit} bytes`);
  if (type === 'encoding.unsupported') return new Failure('unsupported_media_type', 'send the body uncompressed');
  if (type === 'request.aborted' || type === 'request.size.invalid') return new Failure('invalid_request', 'the body did not arrive whole');
  return error instanceof URIError || status === 400 ? new Failure('not_found', 'unknown address') : error;
}

/** RFC 9110 section 15.5.6: a known address with another method is 405 and names the methods. */
function unserved(there: readonly Route[]): Failure {
  const allow = [...new Set(there.map((route) => route.method.toUpperCase()))];
  if (allow.length === 0) return new Failure('not_found', 'unknown address');
  return new Failure('method_not_allowed', { message: `use ${allow.join(' or ')}`, allow });
}

function errorForm(there: readonly Route[]): Pick<Route, 'surface'> {
  // Errors of an address without a route are those of the administrative interface, and a page for a person.
  return { surface: there[0]?.surface ?? 'document' };
}

/** The routes of an address, whatever their methods. */
function routesAt(routes: readonly Route[], path: string, prefix: string): readonly Route[] {
  const inside = insidePath(path, prefix);
  const isTenants = !RESERVED_TENANT_IDS.has(inside.split('/', 2)[1] ?? '');
  const fixed = routes.filter((route) => route.path === inside);
  if (fixed.length > 0) return fixed;
  return routes.filter((route) => (isTenants || !route.path.startsWith('/:tenant')) && patternOf(route.path).test(inside));
}

/** Addresses that are no names of things, and their form behind a path. */
function fixedAddresses(routes: readonly Route[], prefix: string): ReadonlySet<string> {
  const paths = routes.map(({ path }) => path).filter((path) => !path.includes(':'));
  return new Set(prefix === '' ? paths : [...paths, ...paths.map((path) => publicPath(path, prefix))]);
}

const WELL_KNOWN = /^(\/\.well-known\/[^/]+)(\/.*)$/;

/** RFC 8414 section 3.1: the path of an identifier stands after the well-known name, every other one before all. */
function publicPath(path: string, prefix: string): string {
  const [, name = '', rest = path] = WELL_KNOWN.exec(path) ?? [];
  return name + prefix + rest;
}

/** Undoes `publicPath`. */
function insidePath(path: string, prefix: string): string {
  const [, name = '', rest = path] = WELL_KNOWN.exec(path) ?? [];
  return rest.startsWith(`${prefix}/`) ? name + rest.slice(prefix.length) : path;
}

const patterns = new Map<string, RegExp>();

function patternOf(path: string): RegExp {
  const source = () => path.replaceAll('.', '\\.').replaceAll(/:[A-Za-z]+/g, '[^/]+');
  return madeOnce(patterns, path, () => new RegExp(`^${source()}$`));
}

/** What wallets send beside their body (RFC 9449, attestation-based client authentication). */
const SENT = 'Authorization, Content-Type, DPoP, OAuth-Client-Attestation, OAuth-Client-Attestation-PoP';
/** What they read of an answer beside its body. */
const SHOWN = 'DPoP-Nonce, OAuth-Client-Attestation-Challenge, Retry-After, WWW-Authenticate, X-Request-Id';

/**
 * Whether scripts of pages of any origin may call a route (Fetch standard section 3.2, CORS protocol): what wallets call,
 * since wallets may be pages, and what is published. Nothing of that rests on cookies, so no browser lends a page what it
 * has not got itself. Never what administrators call, nor the pages that a person is sent to.
 */
function isForAnyOrigin({ surface, path }: Route): boolean {
  return surface !== 'admin' && surface !== 'page' && !path.startsWith('/oauth2/');
}

function allowOrigin(_request: Request, response: Response, next: NextFunction): void {
  response.setHeader('Access-Control-Allow-Origin', '*');
  response.setHeader('Access-Control-Expose-Headers', SHOWN);
  next();
}

/** Answers what a browser asks before a script may send more than a plain form to these routes of one address. */
function preflight(routes: readonly Route[]): readonly RequestHandler[] {
  const methods = [...new Set(routes.map(({ method }) => method.toUpperCase()))].join(', ');
  const answer: RequestHandler = (_request, response) => {
    response.setHeader('Access-Control-Allow-Methods', methods);
    response.setHeader('Access-Control-Allow-Headers', SENT);
    response.setHeader('Access-Control-Max-Age', '600');
    response.statusCode = 204;
    response.end();
  };
  return [allowOrigin, answer];
}

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
function startRequest(request: Request, response: Response, { log, metrics }: Watching, https: boolean): void {
  const requestId = `${processPrefix}-${(++requestCount).toString(36)}`;
  response.setHeader('X-Request-Id', requestId);
  const given = request.headers['x-request-id'];
  const callerRequestId = typeof given === 'string' && CALLER_ID.test(given) ? given : undefined;
  if (callerRequestId !== undefined) response.setHeader('X-Caller-Request-Id', callerRequestId);
  for (const name in SECURITY_HEADERS) response.setHeader(name, SECURITY_HEADERS[name as keyof typeof SECURITY_HEADERS]);
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
