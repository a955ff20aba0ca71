import { writePem } from '../../domain/formats/der/pem.ts';
import { subjectNames } from '../../domain/keys/certificate-subject.ts';
import type { CertificateSigningRequest } from '../../domain/keys/key-chain-input.ts';
import { signingKey } from '../../domain/keys/signing-key.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { CertificateAuthority } from '../ports/certificate-authority.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';

/** Writes what an authority elsewhere wants to see before it certifies a key of the tenant. */
export class RequestCertificate extends needs({
  store: Store,
  certificateAuthority: CertificateAuthority,
  settings: ServiceSettings,
}) {
  /** @returns a PKCS#10 request (RFC 2986) for the active key as PEM. @throws Failure `not_found`. */
  async execute(caller: TenantCaller, id: string, wanted: CertificateSigningRequest): Promise<string> {
    const { store, certificateAuthority, settings } = this.ports;
    const { active } = await store.forTenant(caller.tenantId, ({ keyChains }) => keyChains.get(id));
    const known = subjectNames(active.certificates[0] ?? '');
    const country = wanted.country ?? known.country;
    const organization = wanted.organization ?? known.organization;
    const request = await certificateAuthority.request(
      {
        subject: {
          commonName: wanted.subjectName ?? known.commonName ?? (await caller.configured.tenant()).name,
          ...defined({ country, organization }),
        },
        publicJwk: active.key.publicJwk,
        dnsNames: wanted.dnsNames ?? [new URL(settings.publicUrl).hostname],
      },
      signingKey(caller.tenantId, active.key),
    );
    return writePem('CERTIFICATE REQUEST', request);
  }
}
