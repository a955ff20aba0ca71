import { z } from 'zod';
import { DEFERRED_STATUSES, type DeferredTransaction } from '../../../domain/issuance/deferred.ts';
import { viewOf } from '../view-of.ts';

export const DeferredView = z
  .object({
    transactionId: z.string(),
    tenantId: z.string(),
    sessionId: z.string(),
    credentialConfigurationId: z.string(),
    holderKeys: z
      .array(z.record(z.string(), z.unknown()))
      .describe('proven keys of the wallet, until the transaction is over'),
    status: z.enum(DEFERRED_STATUSES),
    credentials: z.array(z.string()).optional().describe('until the wallet has fetched them'),
    interval: z.number().describe('seconds between two polls of the wallet'),
    errorMessage: z.string().optional(),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
    expiresAt: z.iso.datetime(),
  })
  .meta({ id: 'DeferredTransaction' });

export function toDeferredView(tenantId: string, transaction: DeferredTransaction) {
  const { id: transactionId, intervalSeconds: interval } = transaction;
  return viewOf(DeferredView, { ...transaction, transactionId, tenantId, interval });
}

export const DeferredDecisionView = z
  .object({ transactionId: z.string(), status: z.enum(DEFERRED_STATUSES), message: z.string() })
  .meta({ id: 'DeferredDecision' });

const MESSAGES: Readonly<Record<DeferredTransaction['status'], string>> = {
  pending: 'The transaction is pending.',
  ready: 'The credential waits for the wallet.',
  retrieved: 'The wallet has fetched the credential.',
  failed: 'The wallet will be told that the credential does not come.',
  expired: 'The transaction has expired.',
};

export function toDecisionView({ id, status }: DeferredTransaction) {
  return { transactionId: id, status, message: MESSAGES[status] };
}
