import type { KeyChain, KeyUsage } from '../../domain/keys/key-chain.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantCaller } from '../caller.ts';
import type { CertificateAuthority } from '../ports/certificate-authority.ts';
import type { Clock } from '../ports/clock.ts';
import type { Kms } from '../ports/kms.ts';
import type { Random } from '../ports/random.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import { createKeyChain } from '../steps/create-key-chain.ts';
import type { KeyChainCreation } from './key-chain-input.ts';

type Ports = {
  readonly store: Store;
  readonly kms: Kms;
  readonly certificateAuthority: CertificateAuthority;
  readonly random: Random;
  readonly clock: Clock;
  readonly settings: ServiceSettings;
};

/** Makes a key chain with its own internal CA. */
export class CreateKeyChain {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `conflict` when the id is taken, `invalid_input` for an unknown KMS provider. */
  async execute(caller: TenantCaller, wanted: KeyChainCreation): Promise<KeyChain> {
    const { store, settings } = this.#ports;
    const { id, description, algorithm, kmsProvider, certValidityDays } = wanted;
    if (id !== undefined) await this.#assertFree(caller, id);
    const chain = await createKeyChain(this.#ports, {
      tenantId: caller.tenantId,
      usages: usagesOf(wanted),
      subjectName: wanted.subjectName ?? (await caller.view.tenant()).name,
      dnsName: new URL(settings.publicUrl).hostname,
      ...(id !== undefined && { id }),
      ...(description !== undefined && description !== null && { description }),
      ...(algorithm !== undefined && { algorithm }),
      ...(wanted.country !== undefined && { country: wanted.country }),
      ...(wanted.organization !== undefined && { organization: wanted.organization }),
      ...(kmsProvider !== undefined && { provider: kmsProvider }),
      ...(certValidityDays !== undefined && { certValidityDays }),
    });
    await store.forTenant(caller.tenantId, ({ keyChains }) => keyChains.add(chain));
    return chain;
  }

  /** Before any key is made: an external KMS would keep the keys of a chain that is refused. */
  async #assertFree(caller: TenantCaller, id: string): Promise<void> {
    const known = await this.#ports.store.forTenant(caller.tenantId, ({ keyChains }) => keyChains.find(id));
    if (known !== undefined) throw new Failure('conflict', 'a key chain of this id exists already');
  }
}

function usagesOf({ usageType, usages }: KeyChainCreation): KeyUsage[] {
  return [...new Set([...(usages ?? []), ...(usageType === undefined ? [] : [usageType])])];
}
