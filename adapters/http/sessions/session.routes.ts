import { z } from 'zod';
import type { PortsOf } from '../../../application/needs.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { CancelSession } from '../../../application/sessions/cancel-session.ts';
import { RetryDelivery } from '../../../application/sessions/retry-delivery.ts';
import { DeleteSession, GetSession, ListSessions, SessionListQuery } from '../../../application/sessions/sessions.ts';
import { ShowSession } from '../../../application/sessions/show-session.ts';
import { SESSION_ROLES } from '../../../application/sessions/visibility.ts';
import { type StatusMessage, WatchSession } from '../../../application/sessions/watch-session.ts';
import { RedeemResponseCode } from '../../../application/verification/redeem-response-code.ts';
import type { SessionId } from '../../../domain/shared/ids.ts';
import { nextPage } from '../output/next-page.ts';
import { family, type Route, reply, route, type StreamItem } from '../route.ts';
import { DeletedView } from '../shapes.ts';
import { maskSession } from './masked-session.ts';
import { DeliveryView, SessionStatusView, SessionView, toDeliveryView, toSessionView } from './session.view.ts';

const params = z.object({
  id: z
    .string()
    .max(200)
    .transform((id) => id as SessionId)
    .describe('Session id'),
});
const common = { tag: 'Sessions', surface: 'admin', access: { anyOf: SESSION_ROLES } } as const;

/** Auditors need no personal values. */
const Values = z.literal('masked').optional().describe('With `masked` every value of a person is replaced; names of claims stay');

const USE_CASES = {
  listSessions: ListSessions,
  getSession: GetSession,
  showSession: ShowSession,
  cancelSession: CancelSession,
  retryDelivery: RetryDelivery,
  spendResponseCode: RedeemResponseCode,
  deleteSession: DeleteSession,
  watchSession: WatchSession,
  settings: ServiceSettings,
};
type UseCases = PortsOf<typeof USE_CASES>;

/** Sessions, as far as the roles and restrictions of the caller allow. */
export const sessionRoutes = family(USE_CASES, (useCases) => [...readRoutes(useCases), ...changeRoutes(useCases), streamRoute(useCases)]);

function readRoutes({ listSessions, getSession, showSession, spendResponseCode, settings }: UseCases): Route[] {
  return [
    route({
      ...common,
      method: 'get',
      path: '/session',
      operationId: 'listSessions',
      exampleParameters: { status: 'active', since: '2026-01-01T00:00:00Z', limit: 20, sort: 'desc' },
      summary: 'List sessions',
      description:
        'Default order: the newest first. The `Link` header with `rel="next"` is the address of the next page. A page may contain fewer than ' +
        '`limit` sessions, or none: for large sessions, or a filter that few sessions match. The last page has no link.',
      query: SessionListQuery.extend({ values: Values }),
      responses: { 200: z.array(SessionView) },
      async handle({ caller, query }) {
        const tenant = await caller.tenant.tenant();
        const { sessions, now, next } = await listSessions.execute(caller, query);
        const views = sessions.map((session) => applyMask(toSessionView({ session, tenant, now }), query.values));
        return reply(200, views, nextPage(`${settings.publicUrl}/session`, query, next));
      },
    }),
    route({
      ...common,
      method: 'get',
      path: '/session/:id',
      operationId: 'getSession',
      exampleParameters: { id: '<session>', response_code: '<response code>' },
      access: { anyOf: SESSION_ROLES, remembered: true },
      summary: 'Read a session',
      params,
      query: z.object({
        values: Values,
        response_code: z
          .string()
          .max(500)
          .optional()
          .describe(
            'Code that the browser returned; valid once, for five minutes, and only for its session. If the ' +
              'configuration has requireResponseCode, it completes the session',
          ),
      }),
      responses: { 200: SessionView },
      async handle({ caller, params: { id }, query }) {
        const { response_code: code, values } = query;
        const session = await (code === undefined ? getSession.execute(caller, id) : spendResponseCode.execute(caller, id, code));
        return reply(200, applyMask(toSessionView(session), values));
      },
    }),
    route({
      ...common,
      method: 'post',
      path: '/session/:id/show',
      operationId: 'showSession',
      exampleParameters: { id: '<session>' },
      access: { anyOf: SESSION_ROLES, remembered: true },
      summary: 'Read a session with personal data',
      description:
        'The whole session, after an audit log entry with the caller was written. For clients that use ' +
        '`values=masked` otherwise; if the entry cannot be written, nothing is returned.',
      params,
      responses: { 200: SessionView },
      handle: async ({ caller, params: { id } }) => reply(200, toSessionView(await showSession.execute(caller, id))),
    }),
  ];
}

function changeRoutes({ cancelSession, retryDelivery, deleteSession }: UseCases): Route[] {
  return [
    route({
      ...common,
      method: 'post',
      path: '/session/:id/cancel',
      operationId: 'cancelSession',
      exampleParameters: { id: '<session>' },
      access: { anyOf: SESSION_ROLES, remembered: true },
      summary: 'Cancel a session',
      description:
        'Cancels an offer or a request: afterwards it can no longer be redeemed, issued or answered, and ' +
        'the session is `failed` with the code `cancelled`. Exactly one of the wallet and this call succeeds. Credentials that were issued ' +
        'before stay valid; `POST /session/revoke` revokes them.',
      params,
      responses: { 200: SessionView, 409: 'It has ended, or its response is being processed' },
      handle: async ({ caller, params: { id } }) => reply(200, toSessionView(await cancelSession.execute(caller, id))),
    }),
    route({
      ...common,
      method: 'post',
      path: '/session/:id/deliveries/:deliveryId/retry',
      operationId: 'retryDelivery',
      exampleParameters: { id: '<session>' },
      summary: 'Repeat a delivery to a webhook',
      description:
        'The same delivery with the same `Idempotency-Key`, once: one that failed, or that has been pending for a minute. The response contains ' +
        'its result; the session is unchanged. Claims are not requested again, because the wallet no longer waits for them.',
      params: params.extend({ deliveryId: z.string().max(200).describe('`deliveries[].id` of the session') }),
      responses: {
        200: DeliveryView,
        409: 'It was delivered, is in progress, or was a request for claims',
        410: 'Its result is no longer stored, or its webhook is not configured',
      },
      async handle({ caller, params: { id, deliveryId } }) {
        return reply(200, toDeliveryView(await retryDelivery.execute(caller, id, deliveryId)));
      },
    }),
    route({
      ...common,
      method: 'delete',
      path: '/session/:id',
      operationId: 'deleteSession',
      exampleParameters: { id: '<session>', response_code: '<response code>' },
      summary: 'Delete a session',
      description:
        'Deletes the session with all its data, and the right to renew its credentials. `GET` then returns 404, and its ' +
        'offer or request ends for the wallet, too: 404 at its link and for a response, `invalid_grant` for the code. Credentials that ' +
        'were issued stay valid; `POST /session/revoke` accepts the id of the session also afterwards.',
      params,
      responses: { 200: DeletedView },
      async handle({ caller, params: { id } }) {
        await deleteSession.execute(caller, id);
        return reply(200, { id });
      },
    }),
  ];
}

function applyMask(view: z.output<typeof SessionView>, values: 'masked' | undefined) {
  return values === 'masked' ? maskSession(view) : view;
}

function streamRoute({ watchSession }: UseCases): Route {
  return route({
    ...common,
    access: { stream: SESSION_ROLES },
    method: 'get',
    path: '/session/:id/events',
    operationId: 'watchSession',
    exampleParameters: { id: '<session>', token: '<access token>' },
    summary: 'Follow the status of a session',
    description:
      'Server-sent events. The present status is sent immediately, then every change; the stream ends with the session, ' +
      'and when the access token expires: reconnect with a new one. `Last-Event-ID` returns the missed changes.',
    params,
    query: z.object({ token: z.string().optional().describe('Access token, for clients that cannot send headers') }),
    responses: {
      200: {
        description: 'Each `data` is one such object; comments keep the connection alive',
        contentType: 'text/event-stream',
        schema: SessionStatusView,
      },
    },
    async handle({ caller, params: { id }, request }) {
      const lastSequence = parseSequence(request.headers['last-event-id']);
      const changes = await watchSession.execute(caller, id, { lastSequence, closed: request.closed });
      return { status: 200, events: streamItems(changes) };
    },
  });
}

function parseSequence(header: string | string[] | undefined): number | undefined {
  return typeof header === 'string' && /^\d{1,9}$/.test(header) ? Number(header) : undefined;
}

async function* streamItems(changes: AsyncIterable<StatusMessage | 'heartbeat'>): AsyncGenerator<StreamItem> {
  for await (const change of changes) {
    if (change === 'heartbeat') yield change;
    else {
      const { id, status, updatedAt, sequence } = change;
      yield { id: String(sequence), data: { id, status, updatedAt: updatedAt.toISOString() } };
    }
  }
}
