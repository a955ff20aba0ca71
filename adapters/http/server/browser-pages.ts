import type { Request, Response } from 'express';
import type { TenantConfigurations } from '../../../application/tenant-cache/tenant-configurations.ts';
import { tenantBranding } from '../../../application/tenants/tenant-branding.ts';
import { defined } from '../../../domain/shared/defined.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { TenantBranding } from '../../../domain/tenants/branding.ts';
import { SERVING } from '../../../domain/tenants/tenant.ts';
import { isNavigation } from '../input/negotiation.ts';
import type { Audience } from '../output/failures.ts';
import { requestIdOf } from '../output/send.ts';
import { errorPage } from '../pages/error-page.ts';
import { preferredLanguages } from '../pages/languages.ts';
import { type BrandedReader, pageReply } from '../pages/page.ts';
import { readerOf } from '../pages/reader.ts';
import { isForWallets, type Reply, type Route, type Surface } from '../route.ts';

/** Answers a request. @throws the error that the caller gets. */
export type Answer = (request: Request, response: Response) => Promise<Reply>;

/** Adds browser pages to a route: a person gets a page where a program gets a parseable response. */
export function withBrowserPages(route: Route, answer: Answer): Answer {
  const { browserPage, surface } = route;
  return async (request, response) => {
    if (browserPage !== undefined && isNavigation(request.headers)) return browserPage({ languages: preferredLanguages(request) });
    if (isForWallets(route)) {
      // The offer or request is neither handed to a person nor counted as fetched.
      const reader = readerAt(request, surface);
      const failed = { status: 406, detail: 'This address is for wallets.', requestId: requestIdOf(response) };
      if (reader !== undefined) return pageReply(errorPage(failed, reader), {}, failed.status);
    }
    const reply = await answer(request, response);
    return reply.status >= 400 && 'json' in reply ? rejectionFor(reply, surface, request, response) : reply;
  };
}

/** Converts a rejection that a route formats itself into a page for a person. */
function rejectionFor(reply: Extract<Reply, { json: unknown }>, surface: Surface, request: Request, response: Response): Reply {
  const reader = readerAt(request, surface);
  if (reader === undefined) return reply;
  const { error } = reply.json as { readonly error?: unknown };
  const failed = { status: reply.status, detail: String(error ?? ''), requestId: requestIdOf(response) };
  const headers = { 'Cache-Control': 'no-store', ...reply.headers };
  return pageReply(errorPage(failed, reader), headers, reply.status);
}

/** @returns the person who reads the response; undefined for a program. */
function readerAt(request: Request, surface: Surface, branding?: TenantBranding): BrandedReader | undefined {
  if (surface === 'admin') return undefined;
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  if (surface !== 'page' && !(isRead && isNavigation(request.headers))) return undefined;
  return { ...readerOf({ languages: preferredLanguages(request) }, branding), ...defined({ branding }) };
}

/** @returns the reader of an error of a route. @param branding of the tenant, for a person. */
export function audienceOf(
  { surface: routeSurface, negotiatesErrorFormat }: ErrorForm,
  request: Request,
  branding?: TenantBranding,
): Audience {
  const surface = negotiatesErrorFormat && !isNavigation(request.headers) ? 'oauth' : routeSurface;
  return { surface, reader: readerAt(request, surface, branding) };
}

type ErrorForm = Pick<Route, 'surface' | 'negotiatesErrorFormat'>;

/**
 * Audience of an error, with the branding of the tenant at whose address a person gets it. The tenant must be in memory and active: an
 * error never causes a query for a tenant that does not exist, and none while the database is down.
 */
export async function brandedAudienceOf(
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
  // A page without branding is better than none.
  return audienceOf(route, request, await tenantBranding(configured).catch(() => undefined));
}
