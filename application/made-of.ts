/** A value, and the document that it was made of; the document counts where it is kept itself. */
export class MadeOf<T> {
  readonly value: T;
  readonly #document: object;

  constructor(document: object, value: T) {
    this.#document = document;
    this.value = value;
  }

  isOf(document: object): boolean {
    return this.#document === document;
  }
}
