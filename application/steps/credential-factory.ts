import { readDisclosureFrame } from '../../domain/formats/sd-jwt/disclosure-frame.ts';
import { prepareSdJwt, sealSdJwt } from '../../domain/formats/sd-jwt/issue.ts';
import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { credentialTimes, protocolClaims } from '../../domain/issuance/credential.ts';
import { vctOf } from '../../domain/issuance/metadata.ts';
import { pickKeyChain, signingChain } from '../../domain/keys/key-chain.ts';
import { signingKey } from '../../domain/keys/signing-key.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { algorithmOf, type PublicJwk } from '../../domain/shared/jwk.ts';
import type { Clock } from '../ports/clock.ts';
import type { Kms } from '../ports/kms.ts';
import type { Random } from '../ports/random.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { TenantView } from './tenant-views.ts';

type Ports = {
  readonly kms: Kms;
  readonly random: Random;
  readonly clock: Clock;
  readonly settings: ServiceSettings;
};

/** Makes signed credentials: prepare, sign, seal. */
export class CredentialFactory {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @returns a compact SD-JWT VC (SD-JWT VC section 2). */
  async make(
    view: TenantView,
    configuration: CredentialConfiguration,
    claims: JsonObject,
    instance: {
      readonly holderKey?: PublicJwk | undefined;
      readonly status?: { readonly idx: number; readonly uri: string };
    },
  ): Promise<string> {
    const { kms, random, clock, settings } = this.#ports;
    const now = clock.now();
    const issuer = issuerIdentifier(settings, view.tenantId);
    const { keyChainId, disclosureFrame } = configuration;
    const chain = pickKeyChain(await view.keyChains(), 'signing', now, keyChainId ?? undefined);
    const header = view.derive(`credential-header/${chain.id}`, () => ({
      alg: algorithmOf(chain.active.key.publicJwk) ?? chain.active.key.handle.algorithm,
      typ: 'dc+sd-jwt',
      // HAIP 1.0 section 6.1.1: the chain without the anchor
      x5c: signingChain(chain),
    }));
    const frame =
      disclosureFrame === null || disclosureFrame === undefined
        ? undefined
        : view.derive(`frame/${configuration.id}`, () => readDisclosureFrame(disclosureFrame));
    const prepared = prepareSdJwt({
      header,
      alwaysVisible: protocolClaims({
        issuer,
        vct: vctOf(configuration, issuer),
        times: credentialTimes(now, configuration.lifeTime),
        ...(instance.holderKey === undefined ? {} : { holderKey: instance.holderKey }),
        ...(instance.status === undefined ? {} : { status: instance.status }),
      }),
      claims,
      ...(frame === undefined ? {} : { frame }),
      randomBytes: (length) => random.bytes(length),
    });
    const signature = await kms.sign(signingKey(view.tenantId, chain.active.key), prepared.signingInput);
    return sealSdJwt(prepared, signature);
  }
}
