import { z } from 'zod';
import {
  DecideDeferred,
  DeferredCompletion,
  DeferredFailure,
} from '../../../application/issuance/decide-deferred.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { warningsOf } from '../../../domain/shared/finding.ts';
import { ListQuery, pageOf } from '../page-of.ts';
import { family, reply, route } from '../route.ts';
import { withWarnings } from '../warnings.ts';
import { DeferredDecisionView, DeferredView, toDecisionView, toDeferredView } from './deferred.view.ts';

const common = {
  tag: 'Issuer',
  surface: 'admin',
  access: { anyOf: ['issuance:offer', 'issuance:manage'] },
} as const;
const one = { ...common, params: z.object({ transactionId: z.string().max(100) }) } as const;
const decided = {
  ...one,
  method: 'post',
  responses: { 200: DeferredDecisionView, 409: 'It is decided already' },
} as const;

const USE_CASES = { deferred: DecideDeferred, settings: ServiceSettings };

/** What a backend does with credentials that it promised for later. */
export const deferredRoutes = family(USE_CASES, ({ deferred, settings }) => [
  route({
    ...common,
    method: 'get',
    path: '/issuer/deferred',
    summary: 'List deferred transactions, the newest first',
    description: 'By the time of their beginning, of which the newest 500 are listed.',
    query: ListQuery.extend({
      session: z.string().max(100).optional().describe('Only those of this session'),
    }),
    responses: { 200: z.array(DeferredView) },
    async handle({ caller, query }) {
      return pageOf({
        all: await deferred.list(caller, query.session),
        query,
        address: `${settings.publicUrl}/issuer/deferred`,
        keyOf: ({ createdAt, id }) => `${createdAt.toISOString()} ${id}`,
        order: 'desc',
        toView: (transaction) => toDeferredView(caller.tenantId, transaction),
      });
    },
  }),
  route({
    ...one,
    method: 'get',
    path: '/issuer/deferred/:transactionId',
    summary: 'Read a deferred transaction',
    responses: { 200: DeferredView },
    async handle({ caller, params }) {
      return reply(200, toDeferredView(caller.tenantId, await deferred.get(caller, params.transactionId)));
    },
  }),
  route({
    ...decided,
    path: '/issuer/deferred/:transactionId/complete',
    summary: 'Supply a deferred credential',
    description:
      'Ready-made, or as claims that the service signs. The wallet gets it when it asks the next time. Of what is ready-made ' +
      'warnings tell what the wallet will refuse: another format, another number than that of its keys, another key.',
    body: DeferredCompletion,
    responses: { ...decided.responses, 200: withWarnings(DeferredDecisionView) },
    example: { claims: { given_name: 'Ada', family_name: 'Lovelace' } },
    bodyLimit: 1024 * 1024,
    async handle({ caller, params, body }) {
      const { findings, ...completed } = await deferred.complete(caller, params.transactionId, body);
      const warnings = warningsOf(findings, caller.configured.profile);
      return reply(200, { ...toDecisionView(completed), warnings });
    },
  }),
  route({
    ...decided,
    path: '/issuer/deferred/:transactionId/fail',
    summary: 'Say that a deferred credential will not come',
    body: DeferredFailure,
    example: { errorMessage: 'The register knows no such person' },
    async handle({ caller, params: { transactionId }, body }) {
      return reply(200, toDecisionView(await deferred.fail(caller, transactionId, body.errorMessage)));
    },
  }),
]);
