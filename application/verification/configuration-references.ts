import { readCertificate } from '../../domain/formats/der/certificate.ts';
import { readPemCertificates } from '../../domain/formats/der/pem.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { Failure, type FieldError } from '../../domain/shared/failure.ts';
import type { PresentationConfigurationBody } from '../../domain/verification/configuration.ts';
import { accessIdentity } from './access-chain.ts';

/**
 * Looks up what a presentation configuration refers to.
 * @throws Failure `invalid_input` that names each reference that leads nowhere.
 */
export function checkReferences(
  { accessKeyChainId, trustAnchors = [] }: PresentationConfigurationBody,
  chains: readonly KeyChain[],
  now: Date,
): void {
  // Without a wish the default counts, and that may still be made before the first request.
  if (typeof accessKeyChainId === 'string') accessIdentity(chains, now, accessKeyChainId);
  const errors = trustAnchors.flatMap((anchor, index): FieldError[] => {
    const path = `trustAnchors.${index}`;
    const fault =
      'certificate' in anchor
        ? certificateFault(anchor.certificate, path)
        : keyChainFault(anchor.keyChainId, chains, path);
    return fault === undefined ? [] : [fault];
  });
  const [first] = errors;
  if (first !== undefined) {
    throw new Failure('invalid_input', { message: `${first.path}: ${first.message}`, errors });
  }
}

function certificateFault(pem: string, path: string): FieldError | undefined {
  const [certificate] = readPemCertificates(pem, 1) ?? [];
  const isReadable =
    certificate !== undefined && readCertificate(Buffer.from(certificate, 'base64')) !== undefined;
  return isReadable
    ? undefined
    : { path: `${path}.certificate`, message: 'Give exactly one PEM certificate.' };
}

function keyChainFault(id: string, chains: readonly KeyChain[], path: string): FieldError | undefined {
  const chain = chains.find((candidate) => candidate.id === id);
  if (chain?.root !== undefined) return undefined;
  const message =
    chain === undefined
      ? `There is no key chain "${id}".`
      : `The key chain "${id}" came from outside and has no CA of its own. Give its CA as a certificate.`;
  return { path: `${path}.keyChainId`, message };
}
