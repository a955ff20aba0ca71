import express, {
  type Express,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import { Failure } from '../../domain/shared/failure.ts';
import { RESERVED_TENANT_IDS } from '../../domain/tenants/tenant.ts';
import { fixedAddresses, publicPath, routesAt } from './addresses.ts';
import { BodyBudget } from './body-budget.ts';
import { allowOrigin, isForAnyOrigin, preflight } from './cross-origin.ts';
import { type Answering, dispatcher } from './dispatch.ts';
import { PublishedTexts } from './published-texts.ts';
import { type RateLimitSettings, RateLimits } from './rate-limits.ts';
import { bodyReader } from './read-body.ts';
import { startRequest } from './request-start.ts';
import type { Route, Surface } from './route.ts';
import { fail, surfaceFor } from './send.ts';
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
  const named: RequestHandler = (request, _response, next) =>
    next(fixed.has(request.path) ? 'route' : undefined);
  const answering: Answering[] = [];
  for (const route of routes) {
    const paths = prefix === '' ? [route.path] : [route.path, publicPath(route.path, prefix)];
    const at = (method: string, ...handlers: readonly RequestHandler[]) =>
      answering.push(...paths.map((path) => ({ method, path, handlers })));
    const ofTenants = [
      ...(route.path.includes(':') ? [named] : []),
      ...(route.path.startsWith('/:tenant') ? [tenantsOnly] : []),
    ];
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
      (request: Request, response: Response) => serve(route, request, response, server),
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
    fail(response, unserved(there), surfaceOf(there), ports.log);
  };
  app.use(refuse);
  // Only body readers get here: express hands their errors to the handler with four parameters.
  const failed = (error: unknown, request: Request, response: Response, _next?: unknown): void => {
    fail(response, bodyFailure(error), surfaceOf(routesAt(routes, request.path, prefix)), ports.log);
  };
  app.use((error: unknown, request: Request, response: Response, next: unknown) =>
    failed(error, request, response, next),
  );
  return {
    app,
    refuse(request, response) {
      startRequest(request, response, ports, isHttps);
      fail(
        response,
        new Failure('invalid_input', 'the address of the request cannot be read'),
        'document',
        ports.log,
      );
    },
    find(request) {
      const answer = find(request);
      return (
        answer &&
        ((_request, response) => {
          startRequest(request, response, ports, isHttps);
          answer(request, response, (error) =>
            error === undefined ? refuse(request, response) : failed(error, request, response),
          );
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
  const counter = budget.counter(typeof route.access === 'string' ? 'strangers' : 'known');
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
      fail(response, error, surfaceFor(route, response.req.headers), log);
    }),
  ];
}

function bodyFailure(error: unknown): unknown {
  if (error instanceof Failure) return error;
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
  // Nobody's: `document` has the same errors as the administrative interface, and pages for people.
  return there[0]?.surface ?? 'document';
}
