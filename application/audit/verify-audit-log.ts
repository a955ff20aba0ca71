import { type AuditEntry, detailOf, SERVICE_SCOPE } from '../../domain/audit/audit-entry.ts';
import type { AuditHead } from '../../domain/audit/chain.ts';
import {
  type ChainFault,
  checkEnd,
  checkEntries,
  type Progress,
  START,
} from '../../domain/audit/check-chain.ts';
import type { Macs } from '../../domain/audit/macs.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { AuditLog, AuditQuery, Store } from '../ports/store.ts';

/** An entry that a chain is known to have had. */
export type Anchor = Progress;

export type ChainReport = {
  /** The tenant, or `SERVICE_SCOPE`. */
  readonly scope: string;
  /** How far the chain is whole: its head, unless there is a fault. */
  readonly end: Progress;
  readonly fault?: ChainFault;
};

type Ports = { readonly store: Store; readonly macs: Macs };

/** Entries in memory at a time. */
const PORTION = 500;

/** Walks the chains of the audit log and finds what was removed or altered. It may run beside the service. */
export class VerifyAuditLog {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * @param anchors entries that somebody kept elsewhere, by their chain.
   * @param onProgress is told how far the present chain is.
   * @returns a report per chain, that of the service first.
   */
  async *execute(
    anchors: ReadonlyMap<string, Anchor> = new Map(),
    onProgress: (scope: string, sequence: number) => void = () => {},
  ): AsyncGenerator<ChainReport> {
    const { store } = this.#ports;
    const seen = new Set<string>();
    let scope: string | undefined = SERVICE_SCOPE;
    while (scope !== undefined) {
      const last: string = scope;
      const anchor = anchors.get(scope);
      if (anchor !== undefined) seen.add(scope);
      yield await this.verify(scope, anchor, onProgress);
      scope = await store.forService(({ audit }) => audit.nextScope(last));
    }
    for (const [gone, anchor] of anchors) if (!seen.has(gone)) yield missing(gone, anchor);
  }

  /** One chain. */
  async verify(
    scope: string,
    anchor?: Anchor,
    onProgress: (scope: string, sequence: number) => void = () => {},
  ): Promise<ChainReport> {
    const known = anchor === undefined ? [] : [anchor];
    const repeated = scope === SERVICE_SCOPE ? [] : await this.#repeated(scope);
    return this.#walk(scope, [...known, ...repeated], onProgress);
  }

  /** Entries of a tenant that the chain of the service repeats: its creation, and the last change of the tenant. */
  async #repeated(tenantId: string): Promise<Anchor[]> {
    const find = async (query: Partial<AuditQuery>) => {
      const wanted = { kind: 'tenant', target: tenantId, ...query, limit: 1 } as const;
      return (await this.#ports.store.forService(({ audit }) => audit.list(wanted)))[0];
    };
    const [creation, latest] = [await find({ action: 'created' }), await find({})];
    if (creation === undefined || latest?.action === 'removed') return [];
    return [creation, latest].flatMap((entry) => referenceOf(entry) ?? []);
  }

  async #walk(
    scope: string,
    anchors: readonly Anchor[],
    onProgress: (scope: string, sequence: number) => void,
  ): Promise<ChainReport> {
    const { macs } = this.#ports;
    // First of all, so that what is written meanwhile does not look like a head that was put back.
    const head = await this.#read(scope, (log) => log.head());
    const wanted = head?.sequence ?? Number.MAX_SAFE_INTEGER;
    let end = START;
    while (end.sequence < wanted) {
      const page = await this.#page(scope, end.sequence, wanted);
      if (page.length === 0) break;
      const { progress, fault } = checkEntries(macs, scope, end, page);
      const astray = lost(anchors, page, progress);
      if (astray !== undefined || fault !== undefined) {
        return { scope, end: progress, fault: (astray ?? fault) as ChainFault };
      }
      end = progress;
      onProgress(scope, end.sequence);
    }
    const fault =
      checkEnd(macs, scope, end, head) ?? short(anchors, end) ?? (await this.#faultAfter(scope, head));
    return { scope, end, ...(fault !== undefined && { fault }) };
  }

  /** Entries that the head does not know of, unless they were written since it was read. */
  async #faultAfter(scope: string, head: AuditHead | undefined): Promise<ChainFault | undefined> {
    const known = head?.sequence ?? 0;
    const [beyond] = await this.#page(scope, known, Number.MAX_SAFE_INTEGER);
    if (beyond === undefined) return undefined;
    const now = await this.#read(scope, (log) => log.head());
    if (now !== undefined && now.sequence > known) return undefined;
    const message = `there are entries after ${known}, where the head says that the chain ends`;
    return { sequence: known + 1, kind: 'head_outdated', message };
  }

  async #page(scope: string, after: number, upTo: number): Promise<AuditEntry[]> {
    const limit = Math.min(PORTION, upTo - after);
    return this.#read(scope, (log) => log.list({ ascending: true, after, limit }));
  }

  #read<T>(scope: string, read: (log: Pick<AuditLog, 'list' | 'head'>) => Promise<T>): Promise<T> {
    const { store } = this.#ports;
    return scope === SERVICE_SCOPE
      ? store.forService(({ audit }) => read(audit))
      : store.forTenant(scope as TenantId, ({ audit }) => read(audit));
  }
}

function referenceOf(entry: AuditEntry | undefined): Anchor | undefined {
  return entry === undefined ? undefined : detailOf(entry).of;
}

/** A whole chain can still be another one than it was. @param until how far `page` was found whole. */
function lost(
  anchors: readonly Anchor[],
  page: readonly AuditEntry[],
  until: Progress,
): ChainFault | undefined {
  const other = page.find(({ sequence, hash }) =>
    anchors.some(
      (anchor) => sequence <= until.sequence && anchor.sequence === sequence && anchor.hash !== hash,
    ),
  );
  if (other === undefined) return undefined;
  const { sequence } = other;
  return { sequence, kind: 'unexpected', message: `entry ${sequence} is another one than was expected` };
}

function short(anchors: readonly Anchor[], end: Progress): ChainFault | undefined {
  const beyond = anchors.find(({ sequence }) => sequence > end.sequence);
  if (beyond === undefined) return undefined;
  const sequence = end.sequence + 1;
  const message = `the chain ends with ${end.sequence}, but it has had an entry ${beyond.sequence}`;
  return { sequence, kind: 'truncated', message };
}

function missing(scope: string, { sequence }: Anchor): ChainReport {
  const message = `there is no such chain, but it has had an entry ${sequence}`;
  return { scope, end: START, fault: { sequence: 1, kind: 'removed', message } };
}
