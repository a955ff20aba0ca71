import { type EditedKind, resourceOf } from '../../domain/resources.ts';
import { canonicalJson } from '../../domain/shared/json.ts';
import { needs } from '../needs.ts';
import { Cipher } from '../ports/cipher.ts';

const EDIT_TAG = 'vidimus/edit-tag';

/**
 * Entity tags (without quotes, RFC 9110 section 8.8.3) that detect concurrent edits. They are keyed, since documents contain secrets
 * that could be guessed from a plain hash.
 */
export class EditTags extends needs({ cipher: Cipher }) {
  readonly #macs = this.ports.cipher.macs(EDIT_TAG);

  tagOf(kind: EditedKind, resource: object): string {
    return this.#macs.make(textOf(kind, resource));
  }

  /** Accepts tags that were created under a former master secret. */
  matches(tag: string, kind: EditedKind, resource: object): boolean {
    return this.#macs.check(textOf(kind, resource), tag) === 'genuine';
  }
}

function textOf(kind: EditedKind, resource: object): string {
  const edited = resourceOf(kind).editablePart?.(resource as never);
  return `${kind} ${canonicalJson(JSON.parse(JSON.stringify(edited)))}`;
}
