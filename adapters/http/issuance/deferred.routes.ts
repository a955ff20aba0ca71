import { z } from 'zod';
import {
  DecideDeferred,
  DeferredCompletion,
  DeferredFailure,
} from '../../../application/issuance/decide-deferred.ts';
import type { PortsOf } from '../../../application/needs.ts';
import { family, type Route, reply, route } from '../route.ts';
import { DeferredDecisionView, DeferredView, toDecisionView, toDeferredView } from './deferred.view.ts';

const tag = 'Issuer';
const access = { anyOf: ['issuance:offer', 'issuance:manage'] } as const;
const Transaction = z.object({ transactionId: z.string().max(100) });

const USE_CASES = { decideDeferred: DecideDeferred };

/** What a backend does with credentials that it promised for later. */
export const deferredRoutes = family(USE_CASES, routesOf);

function routesOf({ decideDeferred }: PortsOf<typeof USE_CASES>): readonly Route[] {
  return [
    ...reads(decideDeferred),
    route({
      method: 'post',
      path: '/issuer/deferred/:transactionId/complete',
      summary: 'Supply a deferred credential',
      description:
        'Ready-made, or as claims that the service signs. The wallet gets it when it asks the next time.',
      tag,
      surface: 'admin',
      access,
      params: Transaction,
      body: DeferredCompletion,
      example: { claims: { given_name: 'Ada', family_name: 'Lovelace' } },
      bodyLimit: 1024 * 1024,
      responses: { 200: DeferredDecisionView, 409: 'It is decided already' },
      async handle({ caller, params, body }) {
        const transaction = await decideDeferred.complete(caller, params.transactionId, body);
        return reply(200, toDecisionView(transaction));
      },
    }),
    route({
      method: 'post',
      path: '/issuer/deferred/:transactionId/fail',
      summary: 'Say that a deferred credential will not come',
      tag,
      surface: 'admin',
      access,
      params: Transaction,
      body: DeferredFailure,
      example: { errorMessage: 'The register knows no such person' },
      responses: { 200: DeferredDecisionView, 409: 'It is decided already' },
      async handle({ caller, params, body }) {
        const transaction = await decideDeferred.fail(caller, params.transactionId, body.errorMessage);
        return reply(200, toDecisionView(transaction));
      },
    }),
  ];
}

function reads(decideDeferred: DecideDeferred): Route[] {
  return [
    route({
      method: 'get',
      path: '/issuer/deferred',
      summary: 'List deferred transactions, the newest first',
      tag,
      surface: 'admin',
      access,
      query: z.object({ session: z.string().max(100).optional() }),
      responses: { 200: z.array(DeferredView) },
      async handle({ caller, query }) {
        const all = await decideDeferred.list(caller, query.session);
        return reply(
          200,
          all.map((transaction) => toDeferredView(caller.tenantId, transaction)),
        );
      },
    }),
    route({
      method: 'get',
      path: '/issuer/deferred/:transactionId',
      summary: 'Read a deferred transaction',
      tag,
      surface: 'admin',
      access,
      params: Transaction,
      responses: { 200: DeferredView },
      async handle({ caller, params }) {
        const transaction = await decideDeferred.get(caller, params.transactionId);
        return reply(200, toDeferredView(caller.tenantId, transaction));
      },
    }),
  ];
}
