import { z } from 'zod';
import { Clock } from '../../../application/ports/clock.ts';
import { StatusCwtPublisher } from '../../../application/status-lists/status-cwt-publisher.ts';
import { AggregateStatusLists } from '../../../application/status-lists/status-lists.ts';
import { StatusPublisher } from '../../../application/status-lists/status-publisher.ts';
import { STATUS_LIST_CWT_TYPE } from '../../../domain/status-lists/token-cwt.ts';
import { acceptedTypes } from '../input/negotiation.ts';
import { family, reply, route } from '../route.ts';
import { TenantPath } from '../shapes.ts';

const USE_CASES = {
  statusPublisher: StatusPublisher,
  statusCwtPublisher: StatusCwtPublisher,
  aggregateStatusLists: AggregateStatusLists,
  clock: Clock,
};

const JWT_TYPE = 'application/statuslist+jwt';
const JWT = { type: JWT_TYPE, names: [JWT_TYPE, 'application/jwt'] };
const CWT = { type: STATUS_LIST_CWT_TYPE, names: [STATUS_LIST_CWT_TYPE, 'application/cwt'] };
/** Token Status List section 8.1; the first form is the default for clients without a preference. */
const FORMS = [JWT, CWT];

/** Public status lists (Token Status List sections 8 and 9). */
export const statusListRoutes = family(USE_CASES, ({ statusPublisher, statusCwtPublisher, aggregateStatusLists, clock }) => [
  route({
    method: 'get',
    path: '/:tenant/status-list/:listId',
    operationId: 'fetchStatusList',
    summary: 'Fetch a status list token (Token Status List section 8.1)',
    tag: 'Status lists',
    surface: 'document',
    access: 'public',
    params: TenantPath.extend({ listId: z.string().max(128) }),
    query: z.object({ time: z.unknown().optional().describe('Historical statuses are not available: the response is 501') }),
    responses: {
      200: { description: `The token as ${JWT.type}, or as ${CWT.type} by the Accept header`, contentType: [JWT.type, CWT.type] },
      304: 'Not modified',
      406: z.object({ error: z.string() }),
      501: z.object({ error: z.string() }),
    },
    async handle({ params, query, request }) {
      // Token Status List section 8.4: historical resolution would reveal when a credential was revoked.
      if (query.time !== undefined) return reply(501, { error: 'historical resolution is not supported' });
      const [form] = acceptedTypes(request.headers.accept, FORMS);
      if (form === undefined) {
        const error = `this list is served as ${JWT.type} and ${CWT.type}`;
        return reply(406, { error });
      }
      const { tenant: tenantId, listId } = params;
      const token = form === JWT ? await statusPublisher.publish(tenantId, listId) : await statusCwtPublisher.publish(tenantId, listId);
      const { etag, expiresAt } = token;
      const seconds = Math.max(0, Math.floor((expiresAt.getTime() - clock.now().getTime()) / 1000));
      const headers = { 'Cache-Control': `public, max-age=${seconds}`, Vary: 'Accept' };
      const text = 'jwt' in token ? token.jwt : token.cwt;
      return { status: 200, text, contentType: form.type, etag, headers };
    },
  }),
  route({
    method: 'get',
    path: '/:tenant/status-lists',
    operationId: 'fetchStatusListAggregation',
    summary: 'List the addresses of all status lists (Token Status List section 9)',
    tag: 'Status lists',
    surface: 'document',
    access: 'public',
    params: TenantPath,
    responses: { 200: z.object({ status_lists: z.array(z.string()) }) },
    async handle({ params }) {
      const lists = await aggregateStatusLists.execute(params.tenant);
      return reply(200, { status_lists: lists }, { 'Cache-Control': 'public, max-age=300' });
    },
  }),
]);
