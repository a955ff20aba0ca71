import type { Container } from 'inversify';
import { PruneAuditLog } from '../../application/audit/prune-audit-log.ts';
import { TellFallen } from '../../application/issuance/tell-fallen.ts';
import { FinishDeliveries } from '../../application/sessions/finish-deliveries.ts';
import { FollowWallets } from '../../application/status-lists/follow-wallets.ts';
import { FulfilRevocations } from '../../application/status-lists/fulfil-revocations.ts';

/** For jobs that are wired by hand: no credential follows its wallet, no person's are to be revoked, and nobody died in a call. */
export function nothingFollowed(container: Container): void {
  const follow = { execute: async () => ({ fallen: 0, mayBeMore: false }) };
  container.bind(FollowWallets).toConstantValue(follow as unknown as FollowWallets);
  const fulfil = { execute: async () => 0 } as unknown as FulfilRevocations;
  container.bind(FulfilRevocations).toConstantValue(fulfil);
  const finish = { execute: async () => 0 } as unknown as FinishDeliveries;
  container.bind(FinishDeliveries).toConstantValue(finish);
  const prune = { execute: async () => ({ last: undefined, gone: 0 }) } as unknown as PruneAuditLog;
  container.bind(PruneAuditLog).toConstantValue(prune);
  container.bind(TellFallen).toConstantValue({ execute: async () => 0 } as unknown as TellFallen);
}
