import type { EntityManager } from '@mikro-orm/core';
import { type DocumentKind, resourceOf } from '../../../domain/resources.ts';
import { assertWithin, type Profile } from '../../../domain/shared/finding.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { TenantRow } from '../rows/administration.row.ts';

/**
 * Looks at every document that is written whether the tenant's profile allows it. It stands where all writers pass, and
 * every writer holds the row of its tenant by then, so a profile that is taken on at the same moment waits for it.
 */
export class ProfileKeeper {
  readonly #em: EntityManager;
  readonly #tenantId: TenantId;

  constructor(em: EntityManager, tenantId: TenantId) {
    this.#em = em;
    this.#tenantId = tenantId;
  }

  /** @throws Failure `invalid_input`. */
  async check(kind: DocumentKind, document: object): Promise<void> {
    const { findings } = resourceOf(kind);
    if (findings === undefined) return;
    const { profile } = await this.#em.findOneOrFail(
      TenantRow,
      { id: this.#tenantId },
      { fields: ['profile'], disableIdentityMap: true },
    );
    assertWithin((profile ?? null) as Profile | null, findings(document as never));
  }
}
