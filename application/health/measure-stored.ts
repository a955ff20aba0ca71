import { parseCompactJws } from '../../domain/formats/jose/compact.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import type { Ending, Metrics } from '../ports/metrics.ts';
import type { TenantReader } from '../ports/repositories.ts';
import { Store } from '../ports/store.ts';

/** Until when lists are looked for: all of them. */
const FAR = new Date(8.64e15);
const LISTS = 500;

/** Finds out what stands in the database alone: at intervals, since whoever reads metrics may ask every second. */
export class MeasureStored extends needs({ store: Store, log: Log }) {
  /** @returns a walk over all tenants; each step is one batch, and says whether there may be more. The last one tells. */
  begin(metrics: Metrics, tenants: number): () => Promise<boolean> {
    const endings: Ending[] = [];
    let after: TenantId | undefined;
    return async () => {
      const ids = await this.#tenants(tenants, after);
      for (const id of ids) endings.push(...(await this.#endingsOf(id)));
      after = ids.at(-1);
      if (ids.length >= tenants) return true;
      metrics.endings([...endings, ...(await this.#trustLists())]);
      metrics.listFill(await this.ports.store.maintenance.listFill());
      return false;
    };
  }

  #tenants(limit: number, after: TenantId | undefined): Promise<readonly TenantId[]> {
    return this.ports.store.forService(async ({ tenants }) => {
      const ids = (await tenants.list()).map(({ id }) => id);
      return ids.filter((id) => after === undefined || id > after).slice(0, limit);
    });
  }

  /** What cannot be read of one tenant keeps nobody else's from being told. */
  async #endingsOf(tenantId: TenantId): Promise<readonly Ending[]> {
    try {
      return await this.ports.store.forTenant(tenantId, (own) => endingsOf(tenantId, own));
    } catch (error) {
      this.ports.log.error('what ends of a tenant cannot be read', { tenantId }, error);
      return [];
    }
  }

  async #trustLists(): Promise<readonly Ending[]> {
    const found = await this.ports.store.maintenance.endingTrustLists(FAR, LISTS);
    return found.map(({ tenantId, id, nextUpdate }) => ({
      kind: 'trust-list',
      tenantId,
      id,
      endsAt: nextUpdate,
    }));
  }
}

async function endingsOf(tenantId: TenantId, own: TenantReader): Promise<readonly Ending[]> {
  const chains = await own.keyChains.list();
  const presentations = await own.presentationConfigurations.list();
  const [issuance] = await own.issuanceConfiguration.list();
  return [
    ...chains.flatMap(({ id, active, root }): Ending[] => [
      { kind: 'certificate', tenantId, id, endsAt: active.notAfter },
      ...(root === undefined ? [] : [{ kind: 'authority' as const, tenantId, id, endsAt: root.notAfter }]),
    ]),
    ...presentations.flatMap(({ id, registrationCert }) => broughtOf(tenantId, id, registrationCert)),
    ...broughtOf(tenantId, 'issuer', issuance?.registrationCert),
  ];
}

/** A registration certificate that was brought along. One that is ordered here is ordered anew before it ends. */
function broughtOf(
  tenantId: TenantId,
  id: string,
  request: { readonly jwt?: string | undefined } | null | undefined,
): readonly Ending[] {
  const exp = request?.jwt === undefined ? undefined : parseCompactJws(request.jwt)?.payload['exp'];
  // What a tenant brought says what it likes: one without a time would stand before those of all others.
  const endsAt = new Date(typeof exp === 'number' ? exp * 1000 : Number.NaN);
  return Number.isNaN(endsAt.getTime()) ? [] : [{ kind: 'registration', tenantId, id, endsAt }];
}
