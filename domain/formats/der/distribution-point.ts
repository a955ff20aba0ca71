import { type DerElement, DerError, readElement, readElements } from './reader.ts';

const FULL_NAME = 0xa0;
const URI = 0x86;

/**
 * Names of a `DistributionPointName` (RFC 5280 section 4.2.1.13) that are addresses.
 * @param field explicitly tagged `[0]`. @throws DerError for a name relative to another one, which nobody here resolves.
 */
export function readPointNames(field: DerElement): readonly string[] {
  const name = readElement(field.content);
  if (name.tag !== FULL_NAME) throw new DerError('relative name of a distribution point');
  return readElements(name.content)
    .filter(({ tag }) => tag === URI)
    .map(({ content }) => content.toString('latin1'));
}
