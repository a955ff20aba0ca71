import type { IncomingHttpHeaders } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { NextFunction, Request, Response } from 'express';
import type { CachedCaller, Caller } from '../../../application/caller.ts';
import type { AuthenticateClient } from '../../../application/clients/authenticate-client.ts';
import type { Log, LogContext } from '../../../application/ports/log.ts';
import type { Metrics } from '../../../application/ports/metrics.ts';
import type { RequestTrace, Traces } from '../../../application/ports/traces.ts';
import type { TenantConfigurations } from '../../../application/tenant-cache/tenant-configurations.ts';
import type { EditTags } from '../../../application/tenants/edit-tags.ts';
import { nameOf } from '../../../domain/audit/audit-entry.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { preconditionOf, withTag } from '../input/edits.ts';
import { inWrittenNames, readInput } from '../input/read-input.ts';
import { assertReadOnlyUnchanged } from '../input/read-only-properties.ts';
import type { Admission } from '../limits/admission.ts';
import type { RateLimits } from '../limits/rate-limits.ts';
import { isPublished, type PublishedTexts } from '../output/published-texts.ts';
import { aboutOf, fail, requestIdOf, send } from '../output/send.ts';
import { preferredLanguages } from '../pages/languages.ts';
import { hasBrowserPages, type RawRequest, type Reply, type Route } from '../route.ts';
import { authenticate } from './authenticate.ts';
import { type Answer, audienceOf, brandedAudienceOf, withBrowserPages } from './browser-pages.ts';

export type Ports = {
  readonly authenticateClient: AuthenticateClient;
  readonly editTags: EditTags;
  readonly log: Log;
  readonly admission: Admission;
  readonly tenants: Pick<TenantConfigurations, 'isCached' | 'latest'>;
  /** undefined if metrics or traces are switched off. */
  readonly metrics?: Metrics | undefined;
  readonly traces?: Traces | undefined;
};
/** Everything that routes need to answer requests. */
export type Server = Ports & { readonly rateLimits: RateLimits; readonly publishedTexts: PublishedTexts };

/** Authenticates the caller before the body is read. */
export function identify(route: Route, { authenticateClient, admission, log, traces }: Server) {
  return async (request: Request, response: Response, next: NextFunction): Promise<void> => {
    response.locals['route'] = route.path;
    const context = aboutOf(response);
    context['route'] = route.path;
    if (traces !== undefined) context['traceId'] = beginTrace(traces, route, request, response);
    try {
      const turn = (tenantId: string) => admission.enter(tenantQueueKey(tenantId), response);
      const caller = await log.within(context, () => traced(response, () => authenticate(route.access, request, authenticateClient, turn)));
      response.locals['caller'] = caller;
      Object.assign(context, identityContext(route, request, caller));
    } catch (error) {
      admission.leave(response);
      fail(response, error, audienceOf(route, request), log);
      return;
    }
    // A body may take long to arrive.
    if (route.body !== undefined) admission.leave(response);
    next();
  };
}

/** @returns the id of the trace, for the log. */
function beginTrace(traces: Traces, { path }: Route, request: Request, response: Response): string {
  const { traceparent } = request.headers;
  const trace = traces.begin(request.method, path, typeof traceparent === 'string' ? traceparent : undefined);
  response.locals['trace'] = trace;
  response.once('close', () => trace.end(response.statusCode));
  return trace.traceId;
}

function traced<T>({ locals }: Response, work: () => T): T {
  const trace = locals['trace'] as RequestTrace | undefined;
  return trace === undefined ? work() : trace.within(work);
}

/** Identity for the log: verified ids, or the tenant in the address. */
function identityContext({ path }: Route, request: Request, caller: Caller | CachedCaller | undefined): LogContext {
  if (caller !== undefined) {
    const { tenantId, clientId, person } = caller;
    return { tenantId, clientId, ...(person !== undefined && { person }) };
  }
  const { tenant } = request.params;
  return path.includes('/:tenant') && typeof tenant === 'string' ? { tenantId: tenant.slice(0, MAX_TENANT_ID) } : {};
}

const MAX_TENANT_ID = 63;

/** Answers the requests of a route that passed `identify`. */
export function serve(route: Route, ports: Server): (request: Request, response: Response) => Promise<void> {
  const isCompressed = isPublished(route);
  const answerProgram: Answer = async (request, response) => {
    const admission = ports.admission.enter(queueKeyOf(route, request, callerOf(response), ports.tenants), response);
    if (admission !== undefined) await admission;
    const reply = await ports.admission.within(response, () => traced(response, () => answer(route, request, response, ports)));
    return isCompressed ? await ports.publishedTexts.answer(reply, request) : reply;
  };
  const answerRequest = hasBrowserPages(route) ? withBrowserPages(route, answerProgram) : answerProgram;
  return (request, response) =>
    ports.log.within(aboutOf(response), async () => {
      try {
        send(response, await answerRequest(request, response), route.surface);
      } catch (error) {
        fail(response, error, await brandedAudienceOf(error, route, request, ports.tenants), ports.log);
      } finally {
        ports.admission.leave(response);
      }
    });
}

function callerOf({ locals }: Response): Caller | CachedCaller | undefined {
  return locals['caller'] as Caller | CachedCaller | undefined;
}

async function answer(route: Route, request: Request, response: Response, ports: Server): Promise<Reply> {
  const client = callerOf(response);
  assertConditions(route, request);
  const { readOnly, originalBody, ...parsedInput } = await readOrReport(route, request, response);
  if (isLarge(request.body)) await setImmediate();
  const parts = { ...parsedInput, request: new SentRequest(request, response) };
  const ifMatch = route.surface === 'admin' ? request.headers['if-match'] : undefined;
  const precondition = preconditionOf(route, parts, ifMatch, ports.editTags);
  const caller = client && { ...client, requestId: requestIdOf(response), ...(precondition !== undefined && { precondition }) };
  const input = { ...parts, caller: caller as never };
  const { rateLimit } = route;
  if (rateLimit?.perClient === true && caller !== undefined) ports.rateLimits.consume(rateLimit.group, `client ${nameOf(caller)}`);
  const limitedClient = limitClaimedClient(route, input, request.ip, ports.rateLimits);
  await assertReadOnlyUnchanged(route, readOnly, input);
  const reply = await handled(route, input, originalBody);
  if (limitedClient !== undefined) ports.rateLimits.recordAuthenticated(limitedClient, request.ip);
  // A large resource must not block the thread, so other requests run before it is hashed.
  if ('storedResource' in reply && reply.storedResource !== undefined) await setImmediate();
  return withTag(route, reply, ports.editTags);
}

async function readOrReport(route: Route, request: Request, response: Response) {
  try {
    return readInput(route, request);
  } catch (error) {
    await reportUnreadBody(route, request, response, error);
    throw error;
  }
}

/** Property names of a body come from the sender, so they are not reported. */
const UNREADABLE_JSON = 'the body is not a JSON object of the expected structure';

/** @param error as the caller gets it. */
export async function reportUnreadBody({ onUnreadBody }: Route, { params }: Request, response: Response, error: unknown): Promise<void> {
  if (onUnreadBody === undefined || !(error instanceof Failure)) return;
  const reportedError = error.code === 'invalid_input' ? new Failure(error.code, UNREADABLE_JSON) : error;
  await onUnreadBody(params as Record<string, string>, reportedError, requestIdOf(response));
}

/** Body size in bytes above which other requests run before the body is parsed. */
const LARGE_BODY = 128 * 1024;

function isLarge(body: unknown): boolean {
  return Buffer.isBuffer(body) && body.length > LARGE_BODY;
}

async function handled(
  route: Route,
  input: Parameters<Route['handle']>[0],
  originalBody: Parameters<typeof inWrittenNames>[1],
): Promise<Reply> {
  try {
    return await route.handle(input);
  } catch (error) {
    throw inWrittenNames(error, originalBody);
  }
}

/** @returns the client that the request names and that the response authenticates. */
function limitClaimedClient(
  { rateLimit }: Route,
  input: Parameters<Route['handle']>[0],
  ip: string | undefined,
  rateLimits: RateLimits,
): string | undefined {
  if (typeof rateLimit?.perClient !== 'function') return undefined;
  const clientId = rateLimit.perClient(input);
  if (clientId !== undefined) rateLimits.consumeUnauthenticated(rateLimit.group, clientId, ip);
  return clientId;
}

/** A client that sends a condition relies on it (RFC 9110 section 13.1), so unsupported ones are rejected. */
function assertConditions({ surface, method }: Route, { headers }: Request): void {
  if (surface !== 'admin') return;
  const unsupported = ['If-Unmodified-Since', ...(method === 'get' ? [] : ['If-None-Match'])];
  for (const name of unsupported) {
    if (headers[name.toLowerCase()] === undefined) continue;
    throw new Failure('invalid_input', `${name} is not supported here; If-Match with an ETag is`);
  }
}

/** Health and metrics are most important under load. */
const NEVER_WAIT = new Set(['health', 'metrics']);

/**
 * Key by which requests share slots: a tenant, all accounts that manage tenants, or all other callers. An address may name any tenant, so a
 * tenant that this process has not seen yet has no share of its own: an attacker could make up names.
 * @returns undefined for requests that never wait.
 */
export function queueKeyOf(
  { path }: Route,
  { params }: Request,
  caller: Caller | CachedCaller | undefined,
  tenants: Pick<TenantConfigurations, 'isCached'>,
): string | undefined {
  if (caller !== undefined) return tenantQueueKey(caller.tenantId);
  if (NEVER_WAIT.has(path.split('/', 2)[1] ?? '')) return undefined;
  const { tenant } = params;
  const isOfTenant = path.includes('/:tenant') && typeof tenant === 'string' && tenants.isCached(tenant);
  return isOfTenant ? tenantQueueKey(tenant) : ANONYMOUS_CALLERS;
}

/** @param tenantId null for accounts that manage tenants. */
export function tenantQueueKey(tenantId: string | null): string {
  return tenantId === null ? OPERATORS : `tenant ${tenantId}`;
}

const ANONYMOUS_CALLERS = 'strangers';
const OPERATORS = 'operators';

const NO_BYTES = Buffer.alloc(0);

/**
 * Request as a route sees it. It is a class, because object literals with accessors get a hidden class each in the engine, which keeps the
 * objects that the accessors capture (the request, its response) until old objects are collected.
 */
class SentRequest implements RawRequest {
  readonly headers: IncomingHttpHeaders;
  readonly requestId: string;
  readonly bytes: Buffer;
  readonly #request: Request;
  readonly #response: Response;

  constructor(request: Request, response: Response) {
    this.headers = request.headers;
    this.requestId = requestIdOf(response);
    this.bytes = Buffer.isBuffer(request.body) ? request.body : NO_BYTES;
    this.#request = request;
    this.#response = response;
  }

  get rawHeaders(): readonly string[] {
    return this.#request.rawHeaders;
  }

  get languages(): readonly string[] {
    return preferredLanguages(this.#request);
  }

  get closed(): AbortSignal {
    const controller = new AbortController();
    this.#response.once('close', () => controller.abort());
    return controller.signal;
  }
}
