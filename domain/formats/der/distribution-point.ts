import { type DerElement, DerError, parseElement, parseElements } from './reader.ts';

const FULL_NAME = 0xa0;
const URI = 0x86;

/**
 * The addresses in a `DistributionPointName` (RFC 5280 section 4.2.1.13).
 * @param field explicitly tagged `[0]`. @throws DerError for a relative name, which is not resolved here.
 */
export function parsePointNames(field: DerElement): readonly string[] {
  const name = parseElement(field.content);
  if (name.tag !== FULL_NAME) throw new DerError('relative name of a distribution point');
  return parseElements(name.content)
    .filter(({ tag }) => tag === URI)
    .map(({ content }) => content.toString('latin1'));
}
