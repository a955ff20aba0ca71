import { z } from 'zod';
import type { Clock } from '../../../application/ports/clock.ts';
import type { AggregateStatusLists } from '../../../application/status-lists/aggregate-status-lists.ts';
import { Revocation, type RevokeSession } from '../../../application/status-lists/revoke-session.ts';
import type { StatusPublisher } from '../../../application/status-lists/status-publisher.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { isKnown } from '../conditional.ts';
import { type Route, Routes, reply, route } from '../route.ts';

type UseCases = {
  readonly statusPublisher: StatusPublisher;
  readonly aggregateStatusLists: AggregateStatusLists;
  readonly revokeSession: RevokeSession;
  readonly clock: Clock;
};

const TOKEN_TYPE = 'application/statuslist+jwt';
const PUBLIC = { 'Access-Control-Allow-Origin': '*' };

/** Status lists for everybody (Token Status List sections 8 and 9) and revocation for the issuer. */
export class StatusListRoutes extends Routes {
  readonly routes: readonly Route[];

  constructor({ statusPublisher, aggregateStatusLists, revokeSession, clock }: UseCases) {
    super();
    this.routes = [
      route({
        method: 'get',
        path: '/:tenant/status-list/:listId',
        summary: 'Fetch a status list token (Token Status List section 8.1)',
        tag: 'Status lists',
        surface: 'document',
        access: 'public',
        params: z.object({ tenant: z.string().max(63), listId: z.string().max(128) }),
        query: z.object({ time: z.unknown().optional() }),
        responses: {
          200: `The token, ${TOKEN_TYPE}`,
          304: 'Not modified',
          406: 'No form of the list is acceptable',
          501: 'The status at another time is not told',
        },
        async handle({ params, query, request }) {
          // Token Status List section 8.4: looking into the past would tell when a credential was revoked
          if (query.time !== undefined)
            return reply(501, { error: 'historical resolution is not supported' }, PUBLIC);
          if (!accepts(request.headers.accept)) {
            return reply(406, { error: `this list is served as ${TOKEN_TYPE}` }, PUBLIC);
          }
          const { jwt, etag, expiresAt } = await statusPublisher.publish(
            params.tenant as TenantId,
            params.listId,
          );
          const seconds = Math.max(0, Math.floor((expiresAt.getTime() - clock.now().getTime()) / 1000));
          const headers = {
            ...PUBLIC,
            'Cache-Control': `public, max-age=${seconds}`,
            ETag: etag,
            Vary: 'Accept',
          };
          if (isKnown(request.headers['if-none-match'], etag)) return { status: 304, empty: true, headers };
          return { status: 200, text: jwt, contentType: TOKEN_TYPE, headers };
        },
      }),
      route({
        method: 'get',
        path: '/:tenant/status-lists',
        summary: 'List the addresses of all status lists (Token Status List section 9)',
        tag: 'Status lists',
        surface: 'document',
        access: 'public',
        params: z.object({ tenant: z.string().max(63) }),
        responses: { 200: z.object({ status_lists: z.array(z.string()) }) },
        async handle({ params }) {
          const lists = await aggregateStatusLists.execute(params.tenant as TenantId);
          return reply(200, { status_lists: lists }, { ...PUBLIC, 'Cache-Control': 'public, max-age=300' });
        },
      }),
      route({
        method: 'post',
        path: '/session/revoke',
        summary: 'Revoke, suspend or reinstate the credentials of a session',
        tag: 'Sessions',
        surface: 'admin',
        access: { anyOf: ['issuance:manage', 'issuance:offer'], unconfirmed: true },
        body: Revocation,
        example: { sessionId: 'pTx5d1mKqkq1sWc0J6h0Sw', status: 1 },
        responses: {
          201: z
            .object({ sessionId: z.string(), status: z.number(), changed: z.number() })
            .meta({ id: 'Revoked' }),
        },
        async handle({ caller, body }) {
          const changed = await revokeSession.execute(caller, body);
          return reply(201, { sessionId: body.sessionId, status: body.status, changed });
        },
      }),
    ];
  }
}

/** Token Status List section 8.1: nothing, anything or the JWT form; a client that only wants CWT gets a 406. */
function accepts(accept: string | undefined): boolean {
  if (accept === undefined) return true;
  return accept.split(',').some((entry) => {
    const [type = '', ...parameters] = entry.trim().toLowerCase().split(';');
    const refused = parameters.some((parameter) => /^\s*q=0(\.0*)?\s*$/.test(parameter));
    return !refused && ['*/*', 'application/*', TOKEN_TYPE, 'application/jwt'].includes(type.trim());
  });
}
