/**
 * A value, and the document that it was made of. That counts where it is kept itself, and is not held here: what is made of it
 * is small beside it, and may be kept for long after the document was removed or pushed out.
 */
export class MadeOf<T> {
  readonly value: T;
  readonly #document: WeakRef<object>;

  constructor(document: object, value: T) {
    this.value = value;
    this.#document = new WeakRef(document);
  }

  isOf(document: object): boolean {
    return this.#document.deref() === document;
  }
}
