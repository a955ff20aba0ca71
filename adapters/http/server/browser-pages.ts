import type { Request, Response } from 'express';
import type { TenantConfigurations } from '../../../application/tenant-cache/tenant-configurations.ts';
import { tenantLook } from '../../../application/tenants/tenant-look.ts';
import { defined } from '../../../domain/shared/defined.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { TenantLook } from '../../../domain/tenants/look.ts';
import { SERVING } from '../../../domain/tenants/tenant.ts';
import { isNavigation } from '../input/negotiation.ts';
import type { Audience } from '../output/failures.ts';
import { requestIdOf } from '../output/send.ts';
import { errorPage } from '../pages/error-page.ts';
import { languagesAsked } from '../pages/languages.ts';
import { type Person, pageReply } from '../pages/page.ts';
import { readerOf } from '../pages/reader.ts';
import { isForWallets, type Reply, type Route, type Surface } from '../route.ts';

/** Answers a request. @throws the error that the caller gets. */
export type Answer = (request: Request, response: Response) => Promise<Reply>;

/** The answers of a route that has browser pages: a person gets a page where a program gets something to parse. */
export function withBrowserPages(route: Route, answer: Answer): Answer {
  const { browserPage, surface } = route;
  return async (request, response) => {
    if (browserPage !== undefined && isNavigation(request.headers)) return browserPage({ languages: languagesAsked(request) });
    if (isForWallets(route)) {
      // The offer or the request is neither handed out to a person nor counted as fetched.
      const reader = personAt(request, surface);
      const failed = { status: 406, detail: 'This address is for wallets.', requestId: requestIdOf(response) };
      if (reader !== undefined) return pageReply(errorPage(failed, reader), {}, failed.status);
    }
    const reply = await answer(request, response);
    return reply.status >= 400 && 'json' in reply ? refusalFor(reply, surface, request, response) : reply;
  };
}

/** A refusal that a route puts in words of its own, as a page for a person. */
function refusalFor(reply: Extract<Reply, { json: unknown }>, surface: Surface, request: Request, response: Response): Reply {
  const reader = personAt(request, surface);
  if (reader === undefined) return reply;
  const { error } = reply.json as { readonly error?: unknown };
  const failed = { status: reply.status, detail: String(error ?? ''), requestId: requestIdOf(response) };
  const headers = { 'Cache-Control': 'no-store', ...reply.headers };
  return pageReply(errorPage(failed, reader), headers, reply.status);
}

/** @returns the person who reads what a request ends with; undefined for a program. */
function personAt(request: Request, surface: Surface, look?: TenantLook): Person | undefined {
  if (surface === 'admin') return undefined;
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  if (surface !== 'page' && !(isRead && isNavigation(request.headers))) return undefined;
  return { ...readerOf({ languages: languagesAsked(request) }, look), ...defined({ look }) };
}

/** @returns who reads an error of a route. @param look of the tenant, for a person. */
export function audienceOf({ surface: own, isToldByAccept }: ErrorForm, request: Request, look?: TenantLook): Audience {
  const surface = isToldByAccept && !isNavigation(request.headers) ? 'oauth' : own;
  return { surface, reader: personAt(request, surface, look) };
}

type ErrorForm = Pick<Route, 'surface' | 'isToldByAccept'>;

/**
 * The audience of an error, with the look of the tenant at whose address a person is refused something. Only of a tenant that this
 * process remembers and that serves: an error never costs a query for a tenant that does not exist, and none while the database is away.
 */
export async function audienceWithLook(
  error: unknown,
  route: Route,
  request: Request,
  tenants: Pick<TenantConfigurations, 'latest'>,
): Promise<Audience> {
  const audience = audienceOf(route, request);
  const { tenant } = request.params ?? {};
  const isBranded = audience.reader !== undefined && typeof tenant === 'string' && error instanceof Failure && error.code !== 'unavailable';
  const configured = isBranded ? tenants.latest(tenant as TenantId) : undefined;
  if (configured?.state.status !== SERVING) return audience;
  // A page without a look is better than none.
  return audienceOf(route, request, await tenantLook(configured).catch(() => undefined));
}
