import { parseCompactJws } from '../../domain/formats/jose/compact.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Log } from '../ports/log.ts';
import type { TenantVersion } from '../ports/maintenance.ts';
import type { ExpiryDate, Metrics } from '../ports/metrics.ts';
import type { TenantReader } from '../ports/repositories.ts';
import { Store } from '../ports/store.ts';
import { TenantValueCache } from '../tenant-cache/tenant-value-cache.ts';

/** End of the query range: the maximum date, for all lists. */
const MAX_DATE = new Date(8.64e15);
const MAX_LISTS = 500;
const MAX_ENDINGS_BYTES = 32 * 1024 * 1024;

/** Measures data of the database at intervals, since metrics may be read every second. */
export class MeasureStored extends needs({ store: Store, log: Log }) {
  #endings: TenantValueCache<readonly ExpiryDate[]> | undefined;

  /**
   * Reads tenants whose configuration changed since this process read them.
   * @param tenants number of tenants per step.
   * @returns a step function, which returns true if there may be more. The last step reports to the metrics.
   */
  begin(metrics: Metrics, tenants: number): () => Promise<boolean> {
    const cache = this.#endings ?? new TenantValueCache<readonly ExpiryDate[]>(this.ports.store, MAX_ENDINGS_BYTES);
    this.#endings = cache;
    const endings: ExpiryDate[] = [];
    let unread: TenantVersion[] | undefined;
    return async () => {
      if (unread === undefined) {
        await cache.refresh();
        unread = [];
        for (const tenant of cache.all()) {
          const cached = cache.get(tenant);
          if (cached === undefined) unread.push(tenant);
          else endings.push(...cached);
        }
      }
      for (const tenant of unread.splice(0, tenants)) endings.push(...(await this.#endingsOf(tenant, cache)));
      if (unread.length > 0) return true;
      metrics.endings([...endings, ...(await this.#trustLists())]);
      metrics.listFill(await this.ports.store.maintenance.listFill());
      return false;
    };
  }

  /** A tenant that cannot be read does not affect the others. */
  async #endingsOf(tenant: TenantVersion, cache: TenantValueCache<readonly ExpiryDate[]>): Promise<readonly ExpiryDate[]> {
    const { id: tenantId } = tenant;
    try {
      const endings = await this.ports.store.forTenant(tenantId, (repositories) => endingsOf(tenantId, repositories));
      cache.set(tenant, endings);
      return endings;
    } catch (error) {
      this.ports.log.error('the expiry dates of a tenant cannot be read', { tenantId }, error);
      return [];
    }
  }

  async #trustLists(): Promise<readonly ExpiryDate[]> {
    const lists = await this.ports.store.maintenance.endingTrustLists(MAX_DATE, MAX_LISTS);
    return lists.map(({ tenantId, id, nextUpdate }) => ({ kind: 'trust-list', tenantId, id, endsAt: nextUpdate }));
  }
}

async function endingsOf(tenantId: TenantId, repositories: TenantReader): Promise<readonly ExpiryDate[]> {
  const chains = await repositories.keyChains.list();
  const presentations = await repositories.presentationConfigurations.list();
  const [issuance] = await repositories.issuanceConfiguration.list();
  return [
    ...chains.flatMap(({ id, active, root }): ExpiryDate[] => [
      { kind: 'certificate', tenantId, id, endsAt: active.notAfter },
      ...(root === undefined ? [] : [{ kind: 'authority' as const, tenantId, id, endsAt: root.notAfter }]),
    ]),
    ...presentations.flatMap(({ id, registrationCert }) => providedCertificateExpiry(tenantId, id, registrationCert)),
    ...providedCertificateExpiry(tenantId, 'issuer', issuance?.registrationCert),
  ];
}

/** The expiry of a registration certificate that a tenant provided. One that is ordered here is renewed automatically. */
function providedCertificateExpiry(
  tenantId: TenantId,
  id: string,
  request: { readonly jwt?: string | undefined } | null | undefined,
): readonly ExpiryDate[] {
  const exp = request?.jwt === undefined ? undefined : parseCompactJws(request.jwt)?.payload['exp'];
  // A certificate without a valid expiry is left out, since it would be sorted before all others.
  const endsAt = new Date(typeof exp === 'number' ? exp * 1000 : Number.NaN);
  return Number.isNaN(endsAt.getTime()) ? [] : [{ kind: 'registration', tenantId, id, endsAt }];
}
