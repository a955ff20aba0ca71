import type { IncomingHttpHeaders } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { NextFunction, Request, Response } from 'express';
import type { Caller, RememberedCaller } from '../../../application/caller.ts';
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
import { assertKept } from '../input/read-only-members.ts';
import type { Admission } from '../limits/admission.ts';
import type { RateLimits } from '../limits/rate-limits.ts';
import { isPublished, type PublishedTexts } from '../output/published-texts.ts';
import { aboutOf, fail, requestIdOf, send } from '../output/send.ts';
import { languagesAsked } from '../pages/languages.ts';
import { hasBrowserPages, type RawRequest, type Reply, type Route } from '../route.ts';
import { authenticate } from './authenticate.ts';
import { type Answer, audienceOf, audienceWithLook, withBrowserPages } from './browser-pages.ts';

export type Ports = {
  readonly authenticateClient: AuthenticateClient;
  readonly editTags: EditTags;
  readonly log: Log;
  readonly admission: Admission;
  readonly tenants: Pick<TenantConfigurations, 'isMet' | 'latest'>;
  /** Where nobody looks, none. */
  readonly metrics?: Metrics | undefined;
  readonly traces?: Traces | undefined;
};
/** What answers a request. */
export type Server = Ports & { readonly rateLimits: RateLimits; readonly publishedTexts: PublishedTexts };

/** Finds out who calls, before anything of the body is read. */
export function identify(route: Route, { authenticateClient, admission, log, traces }: Server) {
  return async (request: Request, response: Response, next: NextFunction): Promise<void> => {
    response.locals['route'] = route.path;
    const about = aboutOf(response);
    about['route'] = route.path;
    if (traces !== undefined) about['traceId'] = beginTrace(traces, route, request, response);
    try {
      const turn = (tenantId: string) => admission.enter(partyOfTenant(tenantId), response);
      const caller = await log.within(about, () => traced(response, () => authenticate(route.access, request, authenticateClient, turn)));
      response.locals['caller'] = caller;
      Object.assign(about, whose(route, request, caller));
    } catch (error) {
      admission.leave(response);
      fail(response, error, audienceOf(route, request), log);
      return;
    }
    // A body may be long in coming.
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

/** Whose request it is, for the log: ids that were told, or the tenant in the address. */
function whose({ path }: Route, request: Request, caller: Caller | RememberedCaller | undefined): LogContext {
  if (caller !== undefined) {
    const { tenantId, clientId, person } = caller;
    return { tenantId, clientId, ...(person !== undefined && { person }) };
  }
  const { tenant } = request.params;
  return path.includes('/:tenant') && typeof tenant === 'string' ? { tenantId: tenant.slice(0, MAX_TENANT_ID) } : {};
}

const MAX_TENANT_ID = 63;

/** Answers the requests of a route that went through `identify`. */
export function serve(route: Route, ports: Server): (request: Request, response: Response) => Promise<void> {
  const isCompressed = isPublished(route);
  const answerProgram: Answer = async (request, response) => {
    const place = ports.admission.enter(partyOf(route, request, callerOf(response), ports.tenants), response);
    if (place !== undefined) await place;
    const reply = await ports.admission.within(response, () => traced(response, () => answer(route, request, response, ports)));
    return isCompressed ? await ports.publishedTexts.answer(reply, request) : reply;
  };
  const answerRequest = hasBrowserPages(route) ? withBrowserPages(route, answerProgram) : answerProgram;
  return (request, response) =>
    ports.log.within(aboutOf(response), async () => {
      try {
        send(response, await answerRequest(request, response), route.surface);
      } catch (error) {
        fail(response, error, await audienceWithLook(error, route, request, ports.tenants), ports.log);
      } finally {
        ports.admission.leave(response);
      }
    });
}

function callerOf({ locals }: Response): Caller | RememberedCaller | undefined {
  return locals['caller'] as Caller | RememberedCaller | undefined;
}

async function answer(route: Route, request: Request, response: Response, ports: Server): Promise<Reply> {
  const known = callerOf(response);
  assertConditions(route, request);
  const { readOnly, written, ...read } = await readOrReport(route, request, response);
  if (isLarge(request.body)) await setImmediate();
  const asked = { ...read, request: new SentRequest(request, response) };
  const ifMatch = route.surface === 'admin' ? request.headers['if-match'] : undefined;
  const precondition = preconditionOf(route, asked, ifMatch, ports.editTags);
  const caller = known && { ...known, requestId: requestIdOf(response), ...(precondition !== undefined && { precondition }) };
  const input = { ...asked, caller: caller as never };
  const { rateLimit } = route;
  if (rateLimit?.perClient === true && caller !== undefined) ports.rateLimits.take(rateLimit.group, `client ${nameOf(caller)}`);
  const named = limitNamed(route, input, request.ip, ports.rateLimits);
  await assertKept(route, readOnly, input);
  const reply = await handled(route, input, written);
  if (named !== undefined) ports.rateLimits.recognize(named, request.ip);
  // What is shown of a resource may be large: others have their turn before it is looked at once more.
  if ('shown' in reply && reply.shown !== undefined) await setImmediate();
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

/** Member names of a body are the sender's own words, so they are not passed on. */
const UNREADABLE_JSON = 'the body is not a JSON object of the expected form';

/** @param error as the caller gets it. */
export async function reportUnreadBody({ onUnreadBody }: Route, { params }: Request, response: Response, error: unknown): Promise<void> {
  if (onUnreadBody === undefined || !(error instanceof Failure)) return;
  const told = error.code === 'invalid_input' ? new Failure(error.code, UNREADABLE_JSON) : error;
  await onUnreadBody(params as Record<string, string>, told, requestIdOf(response));
}

/** Bytes of a body whose reading is a piece of work of its own: others have their turn before it is looked at. */
const LARGE_BODY = 128 * 1024;

function isLarge(body: unknown): boolean {
  return Buffer.isBuffer(body) && body.length > LARGE_BODY;
}

async function handled(route: Route, input: Parameters<Route['handle']>[0], written: Parameters<typeof inWrittenNames>[1]): Promise<Reply> {
  try {
    return await route.handle(input);
  } catch (error) {
    throw inWrittenNames(error, written);
  }
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
  const unheard = ['If-Unmodified-Since', ...(method === 'get' ? [] : ['If-None-Match'])];
  for (const name of unheard) {
    if (headers[name.toLowerCase()] === undefined) continue;
    throw new Failure('invalid_input', `${name} is not supported here; If-Match with an ETag is`);
  }
}

/** What is asked whether the service lives, and how it is: under load most of all. */
const NEVER_WAIT = new Set(['health', 'metrics']);

/**
 * Among whom places are shared: tenants, accounts that manage them, and all others together. An address may name any tenant,
 * so one that this process has not met yet has no share of its own: it would be one for each name that somebody makes up.
 * @returns undefined for what never waits.
 */
export function partyOf(
  { path }: Route,
  { params }: Request,
  caller: Caller | RememberedCaller | undefined,
  tenants: Pick<TenantConfigurations, 'isMet'>,
): string | undefined {
  if (caller !== undefined) return partyOfTenant(caller.tenantId);
  if (NEVER_WAIT.has(path.split('/', 2)[1] ?? '')) return undefined;
  const { tenant } = params;
  const isOfTenant = path.includes('/:tenant') && typeof tenant === 'string' && tenants.isMet(tenant);
  return isOfTenant ? partyOfTenant(tenant) : STRANGERS;
}

/** @param tenantId null for accounts that manage tenants. */
export function partyOfTenant(tenantId: string | null): string {
  return tenantId === null ? OPERATORS : `tenant ${tenantId}`;
}

const STRANGERS = 'strangers';
const OPERATORS = 'operators';

const NOTHING = Buffer.alloc(0);

/**
 * A request as a route sees it. A class, since each object that is written down with accessors of its own gets a description of
 * its own in the engine, which holds what the accessors see (the request, its answer) until old objects are collected.
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
    this.bytes = Buffer.isBuffer(request.body) ? request.body : NOTHING;
    this.#request = request;
    this.#response = response;
  }

  get rawHeaders(): readonly string[] {
    return this.#request.rawHeaders;
  }

  get languages(): readonly string[] {
    return languagesAsked(this.#request);
  }

  get closed(): AbortSignal {
    const controller = new AbortController();
    this.#response.once('close', () => controller.abort());
    return controller.signal;
  }
}
