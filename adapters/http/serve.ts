import { setImmediate } from 'node:timers/promises';
import type { NextFunction, Request, Response } from 'express';
import type { Caller, RememberedCaller } from '../../application/caller.ts';
import type { AuthenticateClient } from '../../application/clients/authenticate-client.ts';
import type { Log, LogContext } from '../../application/ports/log.ts';
import type { Metrics } from '../../application/ports/metrics.ts';
import type { RequestTrace, Traces } from '../../application/ports/traces.ts';
import type { TenantConfigurations } from '../../application/tenant-configurations.ts';
import type { EditTags } from '../../application/tenants/edit-tags.ts';
import { nameOf } from '../../domain/audit/audit-entry.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { Admission } from './admission.ts';
import { authenticate } from './authenticate.ts';
import { preconditionOf, withTag } from './edits.ts';
import { insteadOfWallet, lookOfRefusal, refusalFor } from './pages/for-people.ts';
import { partyOf, partyOfTenant } from './party-of.ts';
import { isPublished, type PublishedTexts } from './published-texts.ts';
import type { RateLimits } from './rate-limits.ts';
import { inWrittenNames, readInput } from './read-input.ts';
import { assertKept } from './read-only-members.ts';
import type { Reply, Route } from './route.ts';
import { aboutOf, fail, requestIdOf, send, surfaceFor } from './send.ts';
import { SentRequest } from './sent-request.ts';

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
      const caller = await log.within(about, () =>
        traced(response, () => authenticate(route.access, request, authenticateClient, turn)),
      );
      response.locals['caller'] = caller;
      Object.assign(about, whose(route, request, caller));
    } catch (error) {
      admission.leave(response);
      fail(response, error, surfaceFor(route, request.headers), log);
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
  return path.includes('/:tenant') && typeof tenant === 'string'
    ? { tenantId: tenant.slice(0, MAX_TENANT_ID) }
    : {};
}

const MAX_TENANT_ID = 63;

/** Answers a request that went through `identify`. */
export async function serve(
  route: Route,
  request: Request,
  response: Response,
  ports: Server,
): Promise<void> {
  await ports.log.within(aboutOf(response), async () => {
    try {
      const instead = insteadOfWallet(route, request, requestIdOf(response));
      if (instead !== undefined) {
        send(response, instead, route.surface);
        return;
      }
      const place = ports.admission.enter(
        partyOf(route, request, callerOf(response), ports.tenants),
        response,
      );
      if (place !== undefined) await place;
      const reply = await ports.admission.within(response, () =>
        traced(response, () => answer(route, request, response, ports)),
      );
      const told = isPublished(route) ? await ports.publishedTexts.answer(reply, request) : reply;
      send(response, refusalFor(told, route, request, requestIdOf(response)), route.surface);
    } catch (error) {
      const look = await lookOfRefusal(error, route, request, ports.tenants);
      fail(response, error, surfaceFor(route, request.headers), ports.log, look);
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
  const caller = known && {
    ...known,
    requestId: requestIdOf(response),
    ...(precondition !== undefined && { precondition }),
  };
  const input = { ...asked, caller: caller as never };
  const { rateLimit } = route;
  if (rateLimit?.perClient === true && caller !== undefined) {
    ports.rateLimits.take(rateLimit.group, `client ${nameOf(caller)}`);
  }
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
export async function reportUnreadBody(
  { onUnreadBody }: Route,
  { params }: Request,
  response: Response,
  error: unknown,
): Promise<void> {
  if (onUnreadBody === undefined || !(error instanceof Failure)) return;
  const told = error.code === 'invalid_input' ? new Failure(error.code, UNREADABLE_JSON) : error;
  await onUnreadBody(params as Record<string, string>, told, requestIdOf(response));
}

/** Bytes of a body whose reading is a piece of work of its own: others have their turn before it is looked at. */
const LARGE_BODY = 128 * 1024;

function isLarge(body: unknown): boolean {
  return Buffer.isBuffer(body) && body.length > LARGE_BODY;
}

async function handled(
  route: Route,
  input: Parameters<Route['handle']>[0],
  written: Parameters<typeof inWrittenNames>[1],
): Promise<Reply> {
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
