import { parseCompactJws } from '../../domain/formats/jose/compact.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import type { TenantVersion } from '../ports/maintenance.ts';
import type { Ending, Metrics } from '../ports/metrics.ts';
import type { TenantReader } from '../ports/repositories.ts';
import { Store } from '../ports/store.ts';
import { ValuesOfTenants } from '../tenant-cache/values-of-tenants.ts';

/** Until when lists are looked for: all of them. */
const FAR = new Date(8.64e15);
const LISTS = 500;
const MAX_ENDINGS_BYTES = 32 * 1024 * 1024;

/** Finds out what stands in the database alone: at intervals, since whoever reads metrics may ask every second. */
export class MeasureStored extends needs({ store: Store, log: Log }) {
  #endings: ValuesOfTenants<readonly Ending[]> | undefined;

  /**
   * Reads tenants whose configuration changed since this process read them.
   * @param tenants that one step reads.
   * @returns a walk; each step is one batch, and says whether there may be more. The last one reports to the metrics.
   */
  begin(metrics: Metrics, tenants: number): () => Promise<boolean> {
    const kept = this.#endings ?? new ValuesOfTenants<readonly Ending[]>(this.ports.store, MAX_ENDINGS_BYTES);
    this.#endings = kept;
    const endings: Ending[] = [];
    let unread: TenantVersion[] | undefined;
    return async () => {
      if (unread === undefined) {
        await kept.refresh();
        unread = [];
        for (const tenant of kept.all()) {
          const known = kept.get(tenant);
          if (known === undefined) unread.push(tenant);
          else endings.push(...known);
        }
      }
      for (const tenant of unread.splice(0, tenants)) endings.push(...(await this.#endingsOf(tenant, kept)));
      if (unread.length > 0) return true;
      metrics.endings([...endings, ...(await this.#trustLists())]);
      metrics.listFill(await this.ports.store.maintenance.listFill());
      return false;
    };
  }

  /** A tenant that cannot be read keeps those of no other tenant from being reported. */
  async #endingsOf(tenant: TenantVersion, kept: ValuesOfTenants<readonly Ending[]>): Promise<readonly Ending[]> {
    const { id: tenantId } = tenant;
    try {
      const endings = await this.ports.store.forTenant(tenantId, (own) => endingsOf(tenantId, own));
      kept.set(tenant, endings);
      return endings;
    } catch (error) {
      this.ports.log.error('what ends of a tenant cannot be read', { tenantId }, error);
      return [];
    }
  }

  async #trustLists(): Promise<readonly Ending[]> {
    const found = await this.ports.store.maintenance.endingTrustLists(FAR, LISTS);
    return found.map(({ tenantId, id, nextUpdate }) => ({ kind: 'trust-list', tenantId, id, endsAt: nextUpdate }));
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
function broughtOf(tenantId: TenantId, id: string, request: { readonly jwt?: string | undefined } | null | undefined): readonly Ending[] {
  const exp = request?.jwt === undefined ? undefined : parseCompactJws(request.jwt)?.payload['exp'];
  // What a tenant brought says what it likes: one without a time would stand before those of all others.
  const endsAt = new Date(typeof exp === 'number' ? exp * 1000 : Number.NaN);
  return Number.isNaN(endsAt.getTime()) ? [] : [{ kind: 'registration', tenantId, id, endsAt }];
}
