import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import type { Caller, RememberedCaller } from '../../application/caller.ts';
import type { AuthenticateClient } from '../../application/clients/authenticate-client.ts';
import type { Log } from '../../application/ports/log.ts';
import { StoreUnavailable } from '../../application/ports/store.ts';
import type { EditTags } from '../../application/tenants/edit-tags.ts';
import { isRestricted } from '../../domain/clients/client.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { RESERVED_TENANT_IDS } from '../../domain/tenants/tenant.ts';
import { publicPath, routesAt } from './addresses.ts';
import { preconditionOf, withTag } from './edits.ts';
import { type Rendered, renderFailure, renderUnexpected } from './failures.ts';
import { type RateLimitSettings, RateLimits } from './rate-limits.ts';
import { bodyReader } from './read-body.ts';
import { readInput } from './read-input.ts';
import { assertKept } from './read-only-members.ts';
import type { Access, RawRequest, Reply, Route, Surface } from './route.ts';
import { sendEvents } from './send-events.ts';

export type HttpSettings = {
  /** Proxies in front whose `X-Forwarded-For` is believed; false for none. */
  readonly trustProxy: boolean | number | string;
  readonly publicUrl: string;
  readonly rateLimits: RateLimitSettings;
};

type Ports = {
  readonly authenticateClient: AuthenticateClient;
  readonly editTags: EditTags;
  readonly log: Log;
};
/** What answers a request. */
type Server = Ports & { readonly rateLimits: RateLimits };

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

async function serve(route: Route, request: Request, response: Response, ports: Server): Promise<void> {
  response.locals['route'] = route.path;
  try {
    send(response, await answer(route, request, response, ports), route.surface);
  } catch (error) {
    fail(response, error, route.surface, ports.log);
  }
}

async function answer(route: Route, request: Request, response: Response, ports: Server): Promise<Reply> {
  const known = await authenticate(route.access, request, ports.authenticateClient);
  assertConditions(route, request);
  const { readOnly, ...read } = readInput(route, request);
  const asked = { ...read, request: rawRequest(request, response) };
  const ifMatch = route.surface === 'admin' ? request.headers['if-match'] : undefined;
  const precondition = preconditionOf(route, asked, ifMatch, ports.editTags);
  const caller = known && {
    ...known,
    requestId: requestIdOf(response),
    ...(precondition !== undefined && { precondition }),
  };
  const input = { ...asked, caller: caller as never };
  limitClient(route, caller, ports.rateLimits);
  const named = limitNamed(route, input, request.ip, ports.rateLimits);
  await assertKept(route, readOnly, input);
  const reply = await route.handle(input);
  if (named !== undefined) ports.rateLimits.recognize(named, request.ip);
  return withTag(route, reply, ports.editTags);
}

function limitClient(
  { rateLimit }: Route,
  caller: Caller | RememberedCaller | undefined,
  rateLimits: RateLimits,
): void {
  if (rateLimit?.perClient !== true || caller === undefined) return;
  rateLimits.take(rateLimit.group, `client ${caller.clientId}`);
}

/** @returns the client that the request names, which the answer proves. */
function limitNamed(
  { rateLimit }: Route,
  input: Parameters<Route['handle']>[0],
  ip: string | undefined,
  rateLimits: RateLimits,
): string | undefined {
  if (typeof rateLimit?.perClient !== 'function') return undefined;
  const clientId = rateLimit.perClient(input);
  if (clientId !== undefined) rateLimits.takeNamed(rateLimit.group, clientId, ip);
  return clientId;
}

/** Who sends a condition relies on it (RFC 9110 section 13.1). */
function assertConditions({ surface, method }: Route, { headers }: Request): void {
  if (surface !== 'admin') return;
  for (const name of method === 'get' ? UNHEARD : [...UNHEARD, 'If-None-Match']) {
    if (headers[name.toLowerCase()] === undefined) continue;
    throw new Failure('invalid_input', `${name} is not supported here; If-Match with an ETag is`);
  }
}
const UNHEARD = ['If-Unmodified-Since'];

async function authenticate(
  access: Access,
  request: Request,
  authenticator: AuthenticateClient,
): Promise<Caller | RememberedCaller | undefined> {
  if (access === 'public' || access === 'wallet') return undefined;
  const token = tokenOf(access, request);
  if ('remembered' in access) return authenticator.remembered(token, (caller) => admit(access, caller));
  const caller = await authenticator.execute(token);
  admit(access, caller);
  return caller;
}

/** @throws Failure `forbidden`. */
function admit(access: Exclude<Access, string>, caller: Caller): void {
  const roles =
    'anyOf' in access
      ? access.anyOf
      : 'service' in access
        ? access.service
        : 'either' in access
          ? access.either
          : access.stream;
  if (!roles.some((role) => (caller.roles as readonly string[]).includes(role))) {
    throw new Failure('forbidden', `this needs one of the roles ${roles.join(', ')}`);
  }
  if (caller.tenantId === null && ('anyOf' in access || 'stream' in access)) {
    throw new Failure('forbidden', 'this belongs to a tenant; use a client of that tenant');
  }
  if (caller.tenantId !== null && 'service' in access) {
    throw new Failure('forbidden', 'this is for accounts that manage tenants');
  }
  if (caller.tenantId !== null && 'unrestricted' in access && isRestricted(caller)) {
    throw new Failure(
      'forbidden',
      'all configurations rest on this; clients that are restricted to some may not write it',
    );
  }
}

/** RFC 6750 section 2.1; the query form only where the contract publishes it, and never logged. */
function tokenOf(access: Access, request: Request): string | undefined {
  const [scheme, token] = (request.headers.authorization ?? '').split(' ', 2);
  if (scheme?.toLowerCase() === 'bearer' && token !== undefined && token !== '') return token;
  const inQuery = typeof access === 'object' && 'stream' in access ? request.query['token'] : undefined;
  return typeof inQuery === 'string' && inQuery !== '' ? inQuery : undefined;
}

function rawRequest(request: Request, response: Response): RawRequest {
  const { headers, rawHeaders } = request;
  return {
    headers,
    rawHeaders,
    requestId: requestIdOf(response),
    bytes: Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0),
    get closed() {
      const controller = new AbortController();
      response.once('close', () => controller.abort());
      return controller.signal;
    },
  };
}

function requestIdOf(response: Response): string {
  return String(response.getHeader('X-Request-Id'));
}

function send(response: Response, answer: Reply, surface: Surface): void {
  response.statusCode = answer.status;
  if (surface !== 'document') response.setHeader('Cache-Control', 'no-store');
  for (const [name, value] of Object.entries(answer.headers ?? {})) response.setHeader(name, value);
  if ('events' in answer) {
    void sendEvents(response, answer.events);
  } else if ('json' in answer) {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(answer.json));
  } else if ('text' in answer) {
    response.setHeader('Content-Type', answer.contentType);
    response.end(answer.text);
  } else {
    response.end();
  }
}

const NO_DATABASE = new Failure('unavailable', {
  message: 'the service cannot use its database at present; try again',
  retryAfterSeconds: 5,
});

function fail(response: Response, error: unknown, surface: Surface, log: Log): void {
  const requestId = requestIdOf(response);
  if (response.headersSent) {
    response.destroy();
    return;
  }
  let rendered: Rendered;
  if (error instanceof Failure) {
    rendered = renderFailure(error, surface, requestId);
    const { cause, code, message } = error;
    // Only of failures is it known that their messages hold no secrets and no claims.
    const reason = cause instanceof Failure ? { reason: cause.message } : {};
    if (cause !== undefined) log.warn(message, { requestId, code, ...reason });
  } else if (error instanceof StoreUnavailable) {
    rendered = renderFailure(NO_DATABASE, surface, requestId);
    log.error(error.message, { requestId, route: String(response.locals['route'] ?? '') }, error.cause);
  } else {
    rendered = renderUnexpected(surface, requestId);
    log.error('unexpected failure', { requestId, route: String(response.locals['route'] ?? '') }, error);
  }
  response.statusCode = rendered.status;
  for (const [name, value] of Object.entries(rendered.headers)) response.setHeader(name, value);
  response.setHeader('Content-Type', rendered.contentType);
  response.end(typeof rendered.body === 'string' ? rendered.body : JSON.stringify(rendered.body));
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
  const type = (error as { type?: unknown } | null)?.type;
  if (type === 'entity.too.large')
    return new Failure(
      'too_large',
      `this address takes at most ${(error as { limit?: unknown } | null)?.limit} bytes`,
    );
  if (type === 'encoding.unsupported')
    return new Failure('unsupported_media_type', 'send the body uncompressed');
  if (type === 'request.aborted' || type === 'request.size.invalid') {
    return new Failure('invalid_request', 'the body did not arrive whole');
  }
  if (error instanceof URIError || (error as { status?: unknown } | null)?.status === 400) {
    return new Failure('not_found', 'unknown address');
  }
  return error;
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
