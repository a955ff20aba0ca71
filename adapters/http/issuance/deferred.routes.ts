import { object, z } from 'zod';
import { DecideDeferred, DeferredCompletion, DeferredFailure } from '../../../application/issuance/decide-deferred.ts';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { DEFERRED_STATUSES, type DeferredTransaction } from '../../../domain/issuance/deferred.ts';
import { warningsOf } from '../../../domain/shared/finding.ts';
import { ListQuery, pageOf } from '../output/page-of.ts';
import { viewOf } from '../output/view-of.ts';
import { withWarnings } from '../output/warnings.ts';
import { family, reply, route } from '../route.ts';

const DeferredView = object({
  transactionId: z.string(),
  tenantId: z.string(),
  sessionId: z.string(),
  credentialConfigurationId: z.string(),
  holderKeys: z.array(z.record(z.string(), z.unknown())).describe('proven keys of the wallet, until the transaction ends'),
  status: z.enum(DEFERRED_STATUSES),
  credentials: z.array(z.string()).optional().describe('until the wallet has fetched them'),
  interval: z.number().describe('seconds between two polls of the wallet'),
  errorMessage: z.string().optional(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
}).meta({ id: 'DeferredTransaction' });

function toDeferredView(tenantId: string, transaction: DeferredTransaction) {
  const { id: transactionId, intervalSeconds: interval } = transaction;
  return viewOf(DeferredView, { ...transaction, transactionId, tenantId, interval });
}

const DeferredDecisionView = object({ transactionId: z.string(), status: z.enum(DEFERRED_STATUSES), message: z.string() }).meta({
  id: 'DeferredDecision',
});

const MESSAGES: Readonly<Record<DeferredTransaction['status'], string>> = {
  pending: 'The transaction is pending.',
  ready: 'The credential waits for the wallet.',
  retrieved: 'The wallet has fetched the credential.',
  failed: 'The wallet is told that the credential will not be issued.',
  expired: 'The transaction has expired.',
};

function toDecisionView({ id, status }: DeferredTransaction) {
  return { transactionId: id, status, message: MESSAGES[status] };
}

const common = { tag: 'Issuer', surface: 'admin', access: { anyOf: ['issuance:offer', 'issuance:manage'] } } as const;
const singleTransaction = { ...common, params: object({ transactionId: z.string().max(100) }) } as const;
const decision = { ...singleTransaction, method: 'post', responses: { 200: DeferredDecisionView, 409: 'It is already decided' } } as const;

const USE_CASES = { deferred: DecideDeferred, settings: ServiceSettings };

/** Deferred credentials, as a backend completes or fails them. */
export const deferredRoutes = family(USE_CASES, ({ deferred, settings }) => [
  route({
    ...common,
    method: 'get',
    path: '/issuer/deferred',
    operationId: 'listDeferredTransactions',
    exampleParameters: { session: '<session>', limit: 20, sort: 'desc' },
    summary: 'List deferred transactions, the newest first',
    description: 'By time of creation; the newest 500 are listed.',
    query: ListQuery.extend({ session: z.string().max(100).optional().describe('Only transactions of this session') }),
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
    ...singleTransaction,
    method: 'get',
    path: '/issuer/deferred/:transactionId',
    operationId: 'getDeferredTransaction',
    summary: 'Read a deferred transaction',
    responses: { 200: DeferredView },
    handle: async ({ caller, params }) => reply(200, toDeferredView(caller.tenantId, await deferred.get(caller, params.transactionId))),
  }),
  route({
    ...decision,
    path: '/issuer/deferred/:transactionId/complete',
    operationId: 'completeDeferredTransaction',
    summary: 'Supply a deferred credential',
    description:
      'As credentials of the backend, or as claims that the service signs. The wallet gets it with its next request. For credentials of the backend, ' +
      'warnings list what the wallet will reject: another format, a number that differs from that of its keys, another key.',
    body: DeferredCompletion,
    responses: {
      200: withWarnings(DeferredDecisionView),
      409: 'It is already decided; or, with the code `session_quota_exceeded`, the open sessions of the tenant have reached the limit of bytes, and the transaction stays pending',
    },
    example: { claims: { given_name: 'Ada', family_name: 'Lovelace' } },
    bodyLimit: 1024 * 1024,
    async handle({ caller, params, body }) {
      const { findings, ...completed } = await deferred.complete(caller, params.transactionId, body);
      const warnings = warningsOf(findings, caller.tenant.profile);
      return reply(200, { ...toDecisionView(completed), warnings });
    },
  }),
  route({
    ...decision,
    path: '/issuer/deferred/:transactionId/fail',
    operationId: 'failDeferredTransaction',
    summary: 'Reject a deferred credential',
    body: DeferredFailure,
    example: { errorMessage: 'The register has no such person' },
    async handle({ caller, params: { transactionId }, body }) {
      return reply(200, toDecisionView(await deferred.fail(caller, transactionId, body.errorMessage)));
    },
  }),
]);
