import { type EditedKind, resourceOf } from '../../domain/resources.ts';
import { canonicalJson } from '../../domain/shared/json.ts';
import { needs } from '../needs.ts';
import { Cipher } from '../ports/cipher.ts';

/** Purpose of the key of the tags. */
const EDIT_TAG = 'vidimus/edit-tag';

/**
 * Tags that tell whether somebody else edited a thing since it was read: entity tags without their quotes (RFC 9110
 * section 8.8.3). They are made with a key, since documents hold secrets that a plain hash would let readers guess.
 */
export class EditTags extends needs({ cipher: Cipher }) {
  readonly #macs = this.ports.cipher.macs(EDIT_TAG);

  /** @param stored a document of this kind. */
  of(kind: EditedKind, stored: object): string {
    return this.#macs.make(textOf(kind, stored));
  }

  /** Also of a tag that was made before the master secret was changed. */
  isOf(tag: string, kind: EditedKind, stored: object): boolean {
    return this.#macs.check(textOf(kind, stored), tag) === 'genuine';
  }
}

function textOf(kind: EditedKind, stored: object): string {
  const edited = resourceOf(kind).edited?.(stored as never);
  return `${kind} ${canonicalJson(JSON.parse(JSON.stringify(edited)))}`;
}
