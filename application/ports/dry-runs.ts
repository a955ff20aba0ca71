import type { CertificateAuthority } from './certificate-authority.ts';
import type { Cipher } from './cipher.ts';
import type { Kms } from './kms.ts';
import type { Secrets } from './secrets.ts';
import type { Store } from './store.ts';

/** An isolated environment for a trial import: an empty store, and keys and secrets that are discarded. */
export type DryRun = {
  readonly store: Store;
  readonly cipher: Cipher;
  readonly kms: Kms;
  readonly secrets: Secrets;
  readonly certificateAuthority: CertificateAuthority;
  close(): Promise<void>;
};

/** Opens environments with the names of the configured KMS providers. */
export abstract class DryRuns {
  abstract open(): Promise<DryRun>;
}
