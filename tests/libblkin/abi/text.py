"""Prints the ABI that abidw describes (its XML is standard input), a line for each fact: a public struct and its members
with their offsets in bytes, a value of an enumeration, a function, a variable.

SPDX-License-Identifier: BSD-2-Clause
"""
import re
import sys
import xml.etree.ElementTree as tree

root = tree.parse(sys.stdin).getroot()
types = {node.get("id"): node for node in root.iter() if node.get("id") and node.tag not in ("subrange", "elf-symbol")}
typedefs = {node.get("type-id"): node.get("name") for node in root.iter("typedef-decl")}
# abidw 2.6 lists undefined symbols, too, although it is told to drop them
symbols = {f"{symbol.get('name')}@@{symbol.get('version')}": symbol for symbol in root.iter("elf-symbol")
           if symbol.get("is-defined") == "yes"}


def spelled(type_id):
    """Returns the type's name as in C. With typedefs resolved, it says how wide a number is."""
    node = types[type_id]
    inner = node.get("type-id")
    if node.tag == "pointer-type-def":
        return spelled(inner) + " *"
    if node.tag == "qualified-type-def":
        return spelled(inner) + "".join(f" {word}" for word in ("const", "volatile") if node.get(word) == "yes")
    if node.tag == "array-type-def":
        return spelled(inner) + "".join(f"[{part.get('length')}]" for part in node.iter("subrange"))
    if node.tag == "typedef-decl":
        return spelled(inner)
    if node.tag == "function-type":
        return f"function({arguments(node)})"
    name = typedefs.get(type_id, "") if node.get("name") == "__anonymous_enum__" else node.get("name")  # abidw 3.0
    return {"class-decl": "struct ", "union-decl": "union ", "enum-decl": "enum "}.get(node.tag, "") + name


def arguments(node):
    return ", ".join("..." if part.get("is-variadic") == "yes" else spelled(part.get("type-id"))
                     for part in node.findall("parameter")) or "void"


def facts():
    for node in types.values():
        name = spelled(node.get("id"))
        if node.get("size-in-bits") and re.fullmatch("(struct|union) (blkin|__anonymous)_[a-z0-9_]*", name):
            yield f"{name}: {int(node.get('size-in-bits')) // 8} bytes"
            for member in node.iter("data-member"):
                what = member.find("var-decl")
                yield (f"{name}: {int(member.get('layout-offset-in-bits', 0)) // 8:4} {spelled(what.get('type-id'))} "
                       f"{what.get('name') or '(anonymous)'}")
        elif node.tag == "enum-decl":
            yield from (f"{name}: {one.get('name')} = {one.get('value')}" for one in node.iter("enumerator"))
    for node in (*root.iter("function-decl"), *root.iter("var-decl")):
        symbol = symbols.pop(node.get("elf-symbol-id"), None)
        if symbol is not None:
            is_function = node.tag == "function-decl"
            if is_function and node.find("return") is None:
                node = types[node.get("type-id")]  # abidw 3.0: the type is elsewhere
            of_type = spelled((node.find("return") if is_function else node).get("type-id"))
            yield (f"{symbol.get('name')}@{symbol.get('version')}: {of_type}" +
                   (f" ({arguments(node)})" if is_function else f", {symbol.get('size')} bytes"))
    yield from (f"{name}: of no known type" for name in symbols)


print("\n".join(sorted(set(facts()))))
