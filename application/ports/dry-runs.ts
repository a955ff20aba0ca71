import type { CertificateAuthority } from './certificate-authority.ts';
import type { Cipher } from './cipher.ts';
import type { Kms } from './kms.ts';
import type { Secrets } from './secrets.ts';
import type { Store } from './store.ts';

/** A place where things are tried: an empty store, and keys and secrets that nobody keeps. */
export type DryRun = {
  readonly store: Store;
  readonly cipher: Cipher;
  readonly kms: Kms;
  readonly secrets: Secrets;
  readonly certificateAuthority: CertificateAuthority;
  close(): Promise<void>;
};

/** Opens such places, which have the names of the KMS providers that there are. */
export abstract class DryRuns {
  abstract open(): Promise<DryRun>;
}
