"""Files in ADNI's format, with every trap of the real ones, about people whose values are known.

RID  trap
  2  scanned at screening (``sc``), processed twice: the run listed first is the later one
  3  scanned at ``scmri``; RID is written 0003
  4  a measurement is -4, so the scan is incomplete
  5  scanned at month 6 only
  6  has a complete scan and no score
  7  has scores and no scan
"""

from csv import QUOTE_ALL
from io import StringIO
from pathlib import Path

import pandas as pd

from deeptobit.datasets import packaged_table

REGIONS = packaged_table("adni_features")
NOT_CORTEX = ("ST22TA", "ST64TA", "ST81TA", "ST123TA")

SCANS = """RID,VISCODE,RUNDATE,base
2,sc,2011-05-16,200
2,sc,2007-03-01,1000
2,m06,2012-01-01,2000
0003,scmri,2007-03-01,300
4,sc,2007-03-01,400
5,m06,2007-03-01,500
6,SC,2007-03-01,600
"""
ADASSCORES = """RID,VISCODE,total11,TOTALMOD,Q4
2,bl,10.33,16,4
2,sc,50,50,9
2,m06,12,18,-4
3,bl,-1,20,5
7,bl,5,9,2
"""
NEUROBAT = """Phase,RID,VISCODE,VISCODE2,USERDATE,LIMMTOTAL,AVTOT1,AVERR1,COMMENT
ADNI1,2,bl,bl,2005-10-02,-4,6,0,"cafetière, 1"
ADNI1,2,sc,sc,2005-09-01,12,-4,-4,
ADNI1,3,bl,bl,2006-02-02,9,5,-1,
ADNI1,3,bl,bl,2005-10-02,9,3,1,
ADNI2,5,v03,bl,2012-10-02,8,4,2,
ADNI2,5,v05,m06,2013-10-02,8,4,2,
"""
ADNIMERGE = """RID,PTID,VISCODE,RAVLT_learning
2,011_S_0002,bl,-1
3,011_S_0003,bl,
5,011_S_0005,bl,-4
"""
SCORES = """table,column,visit,lower,upper
ADASSCORES,TOTAL11,bl,0,70
ADASSCORES,Q4,m06,,10
NEUROBAT,LIMMTOTAL,sc,0,25
NEUROBAT,AVTOT1,bl,0,15
NEUROBAT,AVERR1,bl,0,
ADNIMERGE,RAVLT_learning,bl,-15,15
"""


def write_folder(folder: Path) -> Path:
    """Write ADNI1's files; the value of measurement d of a scan is its ``base`` + d."""
    write_scans(folder / "UCSFFSX_11_02_15_20Mar2024.csv", list(REGIONS["column"]))
    (folder / "ADASSCORES_20Mar2024.csv").write_text(ADASSCORES)
    # Remarks in Latin-1, and names in lower case with a byte order mark: both occur.
    (folder / "NEUROBAT.csv").write_bytes(NEUROBAT.encode("latin-1"))
    (folder / "adnimerge_20Mar2024.CSV").write_text(ADNIMERGE, encoding="utf-8-sig")
    (folder / "scores.csv").write_text(SCORES)
    # Tables of similar names, which are not meant.
    (folder / "ADNIMERGE_DICT_20Mar2024.csv").write_text("FLDNAME\n")
    (folder / "UCSFFSL_02_01_16.csv").write_text("RID\n")
    return folder


def write_scans(path: Path, columns: list[str]) -> None:
    """Write a table of scans whose 138 measurements have the given names."""
    scans = pd.read_csv(StringIO(SCANS), dtype=str)
    base = scans.pop("base").astype(float)
    measured = {name: base + number for number, name in enumerate(columns)}
    measured["ST40TA"] = measured["ST40TA"].mask(scans["RID"] == "4", -4)
    measured |= dict.fromkeys(NOT_CORTEX, base)
    pd.concat([scans, pd.DataFrame(measured)], axis=1).to_csv(path, index=False, quoting=QUOTE_ALL)
