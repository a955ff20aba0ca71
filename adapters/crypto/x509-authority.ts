import {
  CertificateAuthority,
  type CertificateRequest,
  type RevocationListRequest,
  type SigningRequestContent,
} from '../../application/ports/certificate-authority.ts';
import type { Kms, SigningKey } from '../../application/ports/kms.ts';
import type { Random } from '../../application/ports/random.ts';

type Ports = { readonly kms: Kms; readonly random: Random };

/** Creates certificates, revocation lists and certificate requests. This is rare, so `X509Writer` is loaded on first use. */
export class X509Authority extends CertificateAuthority {
  readonly #ports: Ports;
  #writer: Promise<CertificateAuthority> | undefined;

  constructor(ports: Ports) {
    super();
    this.#ports = ports;
  }

  override async issue(request: CertificateRequest, signer: { readonly key: SigningKey; readonly certificate?: string }): Promise<string> {
    return (await this.#load()).issue(request, signer);
  }

  override async revocationList(
    request: RevocationListRequest,
    signer: { readonly key: SigningKey; readonly certificate: string },
  ): Promise<Buffer> {
    return (await this.#load()).revocationList(request, signer);
  }

  override async request(certificateRequest: SigningRequestContent, key: SigningKey): Promise<string> {
    return (await this.#load()).request(certificateRequest, key);
  }

  #load(): Promise<CertificateAuthority> {
    this.#writer ??= import('./x509-writer.ts').then(({ X509Writer }) => new X509Writer(this.#ports));
    return this.#writer;
  }
}
